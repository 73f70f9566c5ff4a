-- +goose Up

CREATE TABLE keyset (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL UNIQUE,
    tags      TEXT NOT NULL,
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL
);

-- hash is {SHA} and the base64 of the SHA-1 of the random part of the key.
CREATE TABLE key (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    keyset      TEXT NOT NULL REFERENCES keyset (name),
    name        TEXT NOT NULL,
    hash        TEXT NOT NULL,
    description TEXT NOT NULL,
    tags        TEXT NOT NULL,
    create_ts   TIMESTAMP NOT NULL,
    update_ts   TIMESTAMP NOT NULL,
    UNIQUE (keyset, name)
);
