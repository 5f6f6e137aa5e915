-- The newest mail of each kind that was sent to an address at the request of a browser that the service does not know. While what it brought can
-- be used, a further request sends none: strangers cannot fill a mailbox, and the person has a link that works (decision 0187).
create table auth.sign_in_mails (
  kind text not null check (kind in ('link', 'reset')),
  -- Lower case.
  email text not null,
  -- Of a link the SHA-256 of its token, in hexadecimal; of a reset the id of its row in auth."verification".
  proof text not null,
  sent_at timestamptz not null,
  primary key (kind, email)
);
create index sign_in_mails_by_time on auth.sign_in_mails (sent_at);
