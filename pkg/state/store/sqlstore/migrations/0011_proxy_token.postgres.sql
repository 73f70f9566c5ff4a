-- +goose Up

-- Who may connect to the xDS port as an Envoy of a proxy, or, where proxy is
-- empty, as the rate-limit engine; no part of the configuration. It outlives its
-- proxy. hash is the SHA-256 of the token in hexadecimal. The note
-- "proxy_token_version" changes with the rows.
CREATE TABLE proxy_token (
    proxy        TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    hash         TEXT NOT NULL UNIQUE,
    create_ts    TIMESTAMPTZ NOT NULL,
    last_used_ts TIMESTAMPTZ,
    PRIMARY KEY (proxy, name)
);
