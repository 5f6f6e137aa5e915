-- A new sanctions list is followed in steps: the list that is being followed, and where the next step begins. Both indexes of addresses get the order of a step.
alter table screening_follow add column if not exists next_version bigint, add column if not exists next_as_of timestamptz,
  add column if not exists next_stage text, add column if not exists after_value text not null default '', add column if not exists after_id text not null default '';
create index concurrently if not exists wallet_transactions_by_sender_and_id on wallet_transactions (lower(from_address), id) where direction = 'in';
drop index concurrently if exists wallet_transactions_by_sender;
create index concurrently if not exists byo_wallets_by_plain_address_and_id on byo_wallets (lower(address), id) where deleted_at is null;
drop index concurrently if exists byo_wallets_by_plain_address;
