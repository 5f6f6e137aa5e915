import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'vault-not-found': { status: 404, title: 'Vault Not Found', detail: 'No such vault, or it has expired.' },
  'vault-token-not-found': {
    status: 404,
    title: 'Vault Token Not Found',
    detail: 'The vault has no such token, or it has expired.',
  },
  'document-not-found': { status: 404, title: 'Document Not Found', detail: 'The vault has no such document.' },
  'item-not-found': {
    status: 404,
    title: 'Item Not Found',
    detail: 'The vault was sealed without a document or file of that id.',
  },
  'vault-sealed': {
    status: 409,
    title: 'Vault Sealed',
    detail: 'The vault is sealed and takes no more writes.',
  },
  'vault-not-sealed': {
    status: 409,
    title: 'Vault Not Sealed',
    detail: 'The vault is not sealed yet; there is nothing to prove.',
  },
  'vault-persisted': {
    status: 409,
    title: 'Vault Persisted',
    detail: 'The vault is persisted and has no expiry to extend.',
  },
  'ttl-exceeds-plan': {
    status: 422,
    title: 'TTL Exceeds Plan',
    detail: 'The plan does not keep a vault that long; maxSeconds says how long it does.',
  },
  'events-per-vault-exceeded': {
    status: 422,
    title: 'Too Many Events',
    detail: 'The vault has as many events as a vault may have.',
  },
})

/** Errors of an operation on one vault. */
export const notFound = { 'vault-not-found': fail.table['vault-not-found'] }

/** Errors of any write into a vault. */
export const notWritable = { ...notFound, 'vault-sealed': fail.table['vault-sealed'] }
