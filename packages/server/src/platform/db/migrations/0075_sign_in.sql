-- People sign in with better-auth, whose tables live in a schema of their own. The statements are what its own generator
-- makes for version 1.7.6 with passkeys; a test compares them with what that version expects.
create schema auth;

create table auth."user" (
  "id" text not null primary key,
  "name" text not null,
  "email" text not null unique,
  "emailVerified" boolean not null,
  "image" text,
  "createdAt" timestamptz default current_timestamp not null,
  "updatedAt" timestamptz default current_timestamp not null
);

create table auth."session" (
  "id" text not null primary key,
  "expiresAt" timestamptz not null,
  "token" text not null unique,
  "createdAt" timestamptz default current_timestamp not null,
  "updatedAt" timestamptz not null,
  "ipAddress" text,
  "userAgent" text,
  "userId" text not null references auth."user" ("id") on delete cascade
);
create index "session_userId_idx" on auth."session" ("userId");
create index "session_expiresAt_idx" on auth."session" ("expiresAt");

create table auth."account" (
  "id" text not null primary key,
  "accountId" text not null,
  "providerId" text not null,
  "userId" text not null references auth."user" ("id") on delete cascade,
  "accessToken" text,
  "refreshToken" text,
  "idToken" text,
  "accessTokenExpiresAt" timestamptz,
  "refreshTokenExpiresAt" timestamptz,
  "scope" text,
  "password" text,
  "createdAt" timestamptz default current_timestamp not null,
  "updatedAt" timestamptz not null
);
create index "account_userId_idx" on auth."account" ("userId");
create unique index "account_providerId_accountId_idx" on auth."account" ("providerId", "accountId");

create table auth."verification" (
  "id" text not null primary key,
  "identifier" text not null,
  "value" text not null,
  "expiresAt" timestamptz not null,
  "createdAt" timestamptz default current_timestamp not null,
  "updatedAt" timestamptz default current_timestamp not null
);
create index "verification_identifier_idx" on auth."verification" ("identifier");
create index "verification_expiresAt_idx" on auth."verification" ("expiresAt");

create table auth."passkey" (
  "id" text not null primary key,
  "name" text,
  "publicKey" text not null,
  "userId" text not null references auth."user" ("id") on delete cascade,
  "credentialID" text not null,
  "counter" integer not null,
  "deviceType" text not null,
  "backedUp" boolean not null,
  "transports" text,
  "createdAt" timestamptz,
  "aaguid" text
);
create index "passkey_userId_idx" on auth."passkey" ("userId");
create index "passkey_credentialID_idx" on auth."passkey" ("credentialID");

-- One-time links. Only the SHA-256 of a link's token is stored.
create table auth.sign_in_links (
  token_hash bytea primary key,
  -- Lower case.
  email text not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  created_at timestamptz not null
);
create index sign_in_links_by_end on auth.sign_in_links (expires_at);

-- The person behind an account; null until the first sign-in.
alter table accounts add column user_id text unique references auth."user" ("id") on delete set null;

-- A person may listen too: then `api_key_id` is the account, which may be a member of several organisations.
alter table listener_secrets drop constraint listener_secrets_api_key_id_fkey;
alter table listener_secrets drop constraint listener_secrets_pkey;
alter table listener_secrets add primary key (api_key_id, organisation_id, environment);
