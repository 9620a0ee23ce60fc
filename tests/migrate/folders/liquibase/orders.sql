--liquibase formatted sql

--changeset shop:1
CREATE TABLE orders (id INTEGER);
--rollback DROP TABLE orders;
