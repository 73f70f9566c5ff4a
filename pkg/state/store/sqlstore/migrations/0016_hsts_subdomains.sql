-- +goose Up

ALTER TABLE service ADD COLUMN hsts_subdomains BOOLEAN NOT NULL DEFAULT FALSE;
