-- Who works on what: leases on shares of the work, by the database's clock; and which place in flight a transaction takes.

create table leases (
  scope text not null,
  -- A share of what the scope works on. A scope has a fixed number of them, whatever it grows to.
  shard integer not null,
  -- Counts the holders. After an asynchronous fail-over one can be given twice, so a holder is known by its token too.
  epoch bigint not null,
  owner_token text not null,
  until timestamptz not null,
  primary key (scope, shard)
) with (fillfactor = 20);

alter table chain_transactions add column travels_alone boolean not null default false;

-- What is under way, by the shard of its sender: `shardOf` in chain/lanes/store.ts is the same expression.
create index chain_transactions_open_by_shard
  on chain_transactions (network, (((hashtextextended(sender, 0) & 7))::integer), sender, nonce) where status <> 'final';
