import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'vault-not-found': {
    status: 404,
    title: 'Vault Not Found',
    detail: 'No such vault, or it has expired.',
    causes: [
      'The vault has reached its `ttl` and was deleted with its content.',
      'The id is of a vault of another organisation or environment, or a vault token is of another vault.',
      'Somebody deleted it.',
    ],
    fix: 'Check the id with `GET /vaults`. To keep vaults longer, send a longer `ttl` on creation, extend them before `ttl` (event `vault.expiring` comes an hour before), or persist them. An expired vault cannot be restored.',
  },
  'vault-token-not-found': {
    status: 404,
    title: 'Vault Token Not Found',
    detail: 'The vault has no such token, or it has expired.',
    causes: ['The vault has no token with this `tokenId`. The token may have expired or been revoked.'],
    fix: 'List the valid tokens with `GET /vaults/{id}/tokens`. If it is not listed, it is no longer valid and needs no revocation.',
  },
  'document-not-found': {
    status: 404,
    title: 'Document Not Found',
    detail: 'The vault has no such document.',
    causes: ['The vault has no document with this `docId`.'],
    fix: '`GET /vaults/{id}` lists the documents that the vault has, with their ids.',
  },
  'item-not-found': {
    status: 404,
    title: 'Item Not Found',
    detail: 'The vault was sealed without a document or file of that id.',
    causes: [
      'The id for which a proof was requested is not in the manifest that was sealed, for example a file that was deleted before the seal.',
    ],
    fix: 'Request the proof for a document or file that `GET /vaults/{id}` lists. Only items of the sealed vault have a proof.',
  },
  'vault-sealed': {
    status: 409,
    title: 'Vault Sealed',
    detail: 'The vault is sealed and cannot be changed.',
    causes: ['The vault was sealed, by you or by another holder of a token, and its content can never change again.'],
    fix: 'Write into another vault. Seal only after the last write.',
  },
  'vault-not-sealed': {
    status: 409,
    title: 'Vault Not Sealed',
    detail: 'The vault has no proof before it is sealed. Seal it first.',
    causes: [
      'A proof was requested from a vault that still accepts writes; the proof is made from the sealed manifest.',
    ],
    fix: 'Seal the vault first (`POST /vaults/{id}/seal`), then request the proof.',
  },
  'vault-persisted': {
    status: 409,
    title: 'Vault Persisted',
    detail: 'The vault is persisted and has no expiry to extend.',
    causes: ['The vault was persisted, so it never expires and its `ttl` is null.'],
    fix: 'A persisted vault does not expire. To end it, delete it with `DELETE /vaults/{id}`.',
  },
  'ttl-exceeds-plan': {
    status: 422,
    title: 'TTL Exceeds Plan',
    detail: 'The plan does not allow this lifetime. maxSeconds is the maximum.',
    causes: [
      '`ttl` is longer than the plan keeps a vault: 24 hours on hobby, 7 days on pro, or what the operator set. `maxSeconds` has the figure.',
    ],
    fix: 'Send a `ttl` of at most `maxSeconds`, or leave it out for the default. Extend the vault later, persist it, or raise the plan.',
  },
  'events-per-vault-exceeded': {
    status: 422,
    title: 'Too Many Events',
    detail: 'The vault has the maximum number of events. Use another vault.',
    causes: ['The vault has 1,000,000 events; every write adds one.'],
    fix: 'Write into another vault. The full one can still be read and sealed.',
  },
})

/** Errors of an operation on one vault. */
export const notFound = { 'vault-not-found': fail.table['vault-not-found'] }

/** Errors of any write into a vault. */
export const notWritable = { ...notFound, 'vault-sealed': fail.table['vault-sealed'] }
