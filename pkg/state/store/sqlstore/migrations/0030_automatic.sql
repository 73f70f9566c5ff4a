-- +goose Up

-- Who provides the certificate of a service: manual, auto, or empty.
ALTER TABLE service ADD COLUMN certificate TEXT NOT NULL DEFAULT '';

-- Certificates that are ordered from an authority, and the state of their orders; no part of the configuration. The keys
-- are sealed. The note "automatic_version" is the last version of a row.
CREATE TABLE automatic_certificate (
    host        TEXT PRIMARY KEY,
    cert        TEXT NOT NULL,
    private_key TEXT NOT NULL,
    order_key   TEXT NOT NULL,
    state       TEXT NOT NULL,
    asked       BIGINT NOT NULL DEFAULT 0,
    gone        BIGINT NOT NULL DEFAULT 0,
    version     BIGINT NOT NULL
);
CREATE INDEX automatic_certificate_version ON automatic_certificate (version);

CREATE TABLE automatic_account (
    id          TEXT PRIMARY KEY,
    url         TEXT NOT NULL,
    private_key TEXT NOT NULL
);

-- Who orders; ends is in milliseconds since 1970, by the clock of the database.
CREATE TABLE automatic_lease (
    id     BIGINT PRIMARY KEY,
    holder TEXT NOT NULL,
    ends   BIGINT NOT NULL
);
INSERT INTO automatic_lease (id, holder, ends) VALUES (1, '', 0);
INSERT INTO note (name, text) VALUES ('automatic_version', '0');
