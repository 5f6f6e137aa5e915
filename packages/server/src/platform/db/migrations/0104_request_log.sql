-- The last requests of each organization. Every column is short, and the rows of an organization are limited, so its bytes are.
create table request_log (
  organisation_id text not null,
  environment text not null check (environment in ('test', 'live')),
  -- The request id, which begins with the time of the request.
  id text not null,
  method text not null,
  -- The path as the API declares it, without its values.
  route text not null,
  status smallint not null,
  duration_ms int not null,
  api_key_id text,
  account_id text,
  -- The code of the problem in the response; null if it is none.
  code text,
  created_at timestamptz not null,
  primary key (organisation_id, environment, id)
);
create index request_log_by_time on request_log (created_at);
