-- Routes that were seen to be paid for, as the middlewares of their organisations report them.
create table registry_routes (
  id text primary key,
  organisation_id text not null,
  environment text not null check (environment in ('test', 'live')),
  host text not null,
  method text not null,
  route_pattern text not null,
  headers jsonb not null,
  query_params jsonb not null,
  body_params jsonb not null,
  body_content_type text,
  -- US dollars, as last seen.
  amount numeric not null check (amount >= 0),
  -- As last seen, and every one that was ever seen.
  protocol text not null check (protocol in ('x402', 'mpp')),
  protocols text[] not null,
  payment_log_id text,
  -- Whether the facilitator's discovery shows it to other organisations.
  is_public boolean not null default false,
  snapshot_count bigint not null,
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  unique (organisation_id, environment, host, method, route_pattern)
);
create index registry_routes_by_tenant on registry_routes (organisation_id, environment, id desc);
create index registry_routes_by_age on registry_routes (organisation_id, environment, is_public desc, last_seen_at desc, id desc);
create index registry_routes_public on registry_routes (environment, last_seen_at desc, id desc) where is_public;
