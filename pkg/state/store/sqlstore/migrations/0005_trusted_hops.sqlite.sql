-- +goose Up

-- The default is that for proxies that are there already.
ALTER TABLE proxy ADD COLUMN trusted_hops INTEGER NOT NULL DEFAULT 0;
