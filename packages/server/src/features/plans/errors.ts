import type { Deps } from '../../platform/ctx.ts'
import { defineErrors, type Problem } from '../../platform/errors.ts'

const title = 'Plan Limit Reached'

const fail = defineErrors({
  'payment-limit-reached': { status: 429, title, detail: 'The payments that the plan grants per month are used up.' },
  'byo-wallet-limit-reached': { status: 429, title, detail: 'The plan takes no more wallets of your own.' },
  'managed-wallet-limit-reached': { status: 429, title, detail: 'The plan takes no more managed wallets.' },
  'webhook-limit-reached': { status: 429, title, detail: 'The plan takes no more webhooks.' },
  'child-address-limit-reached': { status: 429, title, detail: 'The plan takes no more child addresses.' },
  'vault-quota-exceeded': { status: 429, title, detail: 'The plan takes no more active vaults.' },
  'persisted-vault-quota-exceeded': { status: 429, title, detail: 'The plan takes no more persisted vaults.' },
  'documents-per-vault-exceeded': { status: 422, title, detail: 'The vault takes no more documents.' },
  'files-per-vault-exceeded': { status: 422, title, detail: 'The vault takes no more files.' },
  'storage-quota-exceeded': { status: 429, title, detail: 'The storage that the plan grants does not suffice.' },
})

/** Errors of operations that reserve the operator's gas. */
export const gasErrors = {
  'settlement-budget-exceeded': {
    status: 429,
    title: 'Settlement Budget Exceeded',
    detail: 'What the operator spends on gas for this organisation per network and day is used up.',
  },
} as const

/** The limit errors, for the tables of the operations that count. */
export const planErrors = fail.table

/**
 * Returns the document's limit error: a problem record with `limit`, `current` and `upgradeUrl`; its detail contains the figures
 * too.
 */
export function limitError(
  ctx: Pick<Deps, 'upgradeUrl'>,
  code: keyof typeof planErrors,
  limit: number,
  current: number,
): Problem {
  const unit = code === 'storage-quota-exceeded' ? ' bytes' : ''
  const detail = `${fail.table[code].detail.slice(0, -1)}: ${current} of ${limit}${unit} used.`
  return fail(code, { detail, limit, current, upgradeUrl: ctx.upgradeUrl })
}
