-- +goose Up

-- Who may call the API; no part of the configuration. hash is the SHA-256 of
-- the token in hexadecimal.
CREATE TABLE token (
    name         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    role         TEXT NOT NULL,
    hash         TEXT NOT NULL UNIQUE,
    create_ts    TIMESTAMPTZ NOT NULL,
    last_used_ts TIMESTAMPTZ
);
