-- +goose Up

-- Until when nothing more is ordered, for an account or for a registered domain, in milliseconds since 1970; and when an
-- account has its whole ration of orders again.
CREATE TABLE automatic_hold (
    id   TEXT PRIMARY KEY,
    ends BIGINT NOT NULL
);
