# A shell and its tools, for tests. tools/build.sh images makes the folder and the image.
FROM scratch
COPY rootfs /
ENV PATH=/bin
CMD ["sh"]
