-- Whether until_block was the newest block of the wallet's network when its watch ended. Where that is not known, a block above it whose time
-- is before the end belongs to the wallet.
alter table watched_addresses add column is_until_newest boolean not null default false;
