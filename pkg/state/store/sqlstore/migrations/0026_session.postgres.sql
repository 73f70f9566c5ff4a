-- +goose Up

-- Browsers that have signed in; no part of the configuration. hash, header and token are SHA-256 in hexadecimal: of the
-- half in the cookie, of the half in the header, and of the token whose rights the session has.
CREATE TABLE session (
    hash      TEXT PRIMARY KEY,
    header    TEXT NOT NULL,
    token     TEXT NOT NULL,
    create_ts TIMESTAMPTZ NOT NULL,
    end_ts    TIMESTAMPTZ NOT NULL
);
CREATE INDEX session_token ON session (token, create_ts);
