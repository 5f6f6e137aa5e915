-- Places at which the trace of flagged money goes on in another transaction, from which block, and the first block whose frozen amounts it changes. The token's
-- money of the whole tenant on the network is on hold meanwhile.
create table taint_traces (
  organisation_id text not null,
  environment text not null check (environment in ('test', 'live')),
  wallet_id text not null,
  network text not null,
  token text not null,
  block_number bigint not null,
  first_block bigint not null,
  primary key (wallet_id, network, token)
);
create index taint_traces_by_block on taint_traces (network, block_number);
create index taint_traces_by_tenant on taint_traces (organisation_id, environment, network);
