build_images() { :; }
images_folder() { printf "%s/images" "$cache"; }
