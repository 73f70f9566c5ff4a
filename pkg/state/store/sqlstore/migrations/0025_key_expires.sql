-- +goose Up

-- When a key ends, in the form of RFC 3339; empty means never.
ALTER TABLE key ADD COLUMN expires TEXT NOT NULL DEFAULT '';
