-- What partners said has news. A hint is no state: whoever follows a payout reads it at the partner, and takes the hint away.

create table payout_hints (
  partner text not null,
  payout_id text not null,
  heard_at timestamptz not null,
  primary key (partner, payout_id)
);
create index payout_hints_by_age on payout_hints (heard_at);
