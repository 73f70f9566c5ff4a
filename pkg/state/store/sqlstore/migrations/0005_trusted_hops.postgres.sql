-- +goose Up

-- The default is that for proxies that are there already.
ALTER TABLE proxy ADD COLUMN trusted_hops BIGINT NOT NULL DEFAULT 0;
