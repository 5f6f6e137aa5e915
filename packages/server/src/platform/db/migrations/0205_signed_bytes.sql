-- How far the sweep of signed bytes has come in each table, by the keys of its rows, and the rows that it passed and that still needed their bytes.
create table signed_bytes_walks (
  name text primary key,
  after text not null
);
insert into signed_bytes_walks (name, after) values ('payments', ''), ('relays', '0'), ('chain_transactions', '');
create table signed_bytes_kept (
  walk text not null,
  key text not null,
  due_at timestamptz not null,
  primary key (walk, key)
);
create index signed_bytes_kept_due on signed_bytes_kept (walk, due_at);

-- When a transaction became final; null for those of the version before.
alter table chain_transactions add column final_at timestamptz;
