-- Whether this database is what the service last worked on: compared with marks that are kept outside it.

create table witness_state (
  is_only boolean primary key default true check (is_only),
  -- Names the marks of this deployment. Random, and the same in every copy of the database.
  deployment text not null,
  -- Counts the restores.
  generation integer not null default 0,
  -- Advances before what was committed takes effect outside.
  counter bigint not null default 0,
  restored_at timestamptz
) with (fillfactor = 10);

-- The generation in which the lane's nonces were last compared with the chain: an older one plans nothing.
alter table lanes add column generation integer not null default 0;
create index lanes_by_generation on lanes (network, generation, sender);
