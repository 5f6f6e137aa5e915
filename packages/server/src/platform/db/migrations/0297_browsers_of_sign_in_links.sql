-- SHA-256 of the secret in the cookie of the browser that requested a link by e-mail. Null: no browser requested it.
alter table auth.sign_in_links add column browser_hash bytea;
