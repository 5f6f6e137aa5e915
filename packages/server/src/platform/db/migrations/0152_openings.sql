-- Balances of managed wallets from before the transfers of a token on a network were booked. That money has no deposits, so nobody screened it.

-- The tokens whose transfers are booked from some block on; null on networks that the version before followed: all of that version.
alter table deposit_cursors add column tokens text[];
alter table deposit_cursors alter column tokens set default '{}';
update deposit_cursors set tokens = '{}' where scanned is null;

create table opening_amounts (
  wallet_id text not null,
  network text not null,
  token text not null,
  organisation_id text not null references organisations (id),
  environment text not null,
  -- The balance after this block. What is booked up to it is subtracted when it is read.
  block_number bigint not null,
  raw_amount numeric not null,
  primary key (wallet_id, network, token)
);
