-- Tokens of managed wallets on a network that received flagged or tainted money, and how much of it is frozen there now.
create table tainted_places (
  organisation_id text not null,
  environment text not null check (environment in ('test', 'live')),
  wallet_id text not null,
  network text not null,
  token text not null,
  raw_frozen numeric(78, 0) not null check (raw_frozen >= 0),
  primary key (wallet_id, network, token)
);

insert into tainted_places (organisation_id, environment, wallet_id, network, token, raw_frozen)
select organisation_id, environment, wallet_id, network, token, sum(frozen_raw_amount) from wallet_transactions
where direction = 'in' and (aml_status = 'flagged' or tainted_raw_amount > 0 or frozen_raw_amount > 0) and wallet_id not like 'byw\_%'
group by organisation_id, environment, wallet_id, network, token;

-- What such a place held after a block, and what of that was tainted: a change is followed from the checkpoint before it.
create table taint_checkpoints (
  organisation_id text not null,
  environment text not null check (environment in ('test', 'live')),
  wallet_id text not null,
  network text not null,
  token text not null,
  block_number bigint not null,
  raw_balance numeric(78, 0) not null check (raw_balance >= 0),
  raw_tainted numeric(78, 0) not null check (raw_tainted >= 0),
  primary key (wallet_id, network, token, block_number)
);

-- Flagged and tainted money of a place, in the order of the chain.
drop index wallet_transactions_tainted;
create index wallet_transactions_tainted on wallet_transactions (wallet_id, network, token, block_number)
  where direction = 'in' and (aml_status = 'flagged' or tainted_raw_amount > 0 or frozen_raw_amount > 0);
