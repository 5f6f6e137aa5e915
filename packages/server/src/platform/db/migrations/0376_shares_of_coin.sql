-- What transfers have proven with the coin that an account received in a block, where no transaction itself sent it: several share the rise of a balance.
create table if not exists coin_shares (
  transfer_id text primary key,
  organisation_id text not null,
  environment text not null check (environment in ('test', 'live')),
  network text not null,
  account text not null,
  block_number bigint not null,
  raw_least numeric(78, 0) not null check (raw_least >= 0)
);
create index if not exists coin_shares_of_block on coin_shares (network, account, block_number);
