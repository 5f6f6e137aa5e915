import type { SimChain } from './chain.ts'
import type { PayerKind, Purchase } from './purchase.ts'
import { callOf, type Signed, settleOf, textOf } from './signed.ts'
import { signatureOf } from './words.ts'

const elsewhere = `0x${'e'.repeat(40)}` as const

/** How many seconds before expiry a late payer sends its own authorization. */
const lateSeconds = 14n

/** Whether this payer acts now: at random for most, and for one as late as a block can still include it. */
export function isTimely({ kind, signed }: Purchase, nowSeconds: number, isHappening: boolean): boolean {
  if (kind !== 'sends-late' || signed.form !== 'eip3009') return isHappening
  return signed.authorization.validBefore - BigInt(nowSeconds) <= lateSeconds
}

/** Does on the chain what the payer planned. */
export function strike(chain: SimChain, { kind, signed }: Purchase): void {
  if (signed.form === 'permit2') strikePermit(chain, kind, signed)
  else strikeAuthorization(chain, kind, signed)
}

/** Gets its money back and sends its authorization itself, whatever happened to the payment meanwhile. */
export function payAfterAll(chain: SimChain, { signed }: Purchase): void {
  if (signed.form !== 'eip3009') return
  const { from, value } = signed.authorization
  chain.addStranger([{ kind: 'pay', from: elsewhere, to: from, value }, callOf(chain.rules, signed)])
}

function strikeAuthorization(
  chain: SimChain,
  kind: PayerKind,
  { authorization, ...signed }: Extract<Signed, { form: 'eip3009' }>,
): void {
  const { from, to, nonce, value } = authorization
  if (kind === 'poor' || kind === 'pays-after-all') chain.addStranger({ kind: 'pay', from, to: elsewhere, value })
  if (kind === 'cancels') chain.addStranger({ kind: 'cancel', from, nonce })
  if (kind === 'takes-on-code') chain.addStranger({ kind: 'take-on-code', from })
  if (kind === 'sends-itself' || kind === 'sends-late')
    chain.addStranger(callOf(chain.rules, { ...signed, authorization }))
  if (kind !== 'signs-twice') return
  const other = { ...authorization, to: from, value: 0n }
  const text = textOf({ form: 'eip3009', authorization: other })
  // The transaction also has a transfer of the amount between the accounts, which pays for something else.
  chain.addStranger([
    { kind: 'transfer', authorization: other, signature: signatureOf(text) },
    { kind: 'pay', from, to, value },
  ])
}

function strikePermit(chain: SimChain, kind: PayerKind, signed: Extract<Signed, { form: 'permit2' }>): void {
  const { owner, nonce, witness } = signed.permit
  if (kind === 'permit-given-up') chain.addStranger({ kind: 'give-up', owner, nonce })
  if (kind === 'permit-sent-by-another') chain.addStranger(callOf(chain.rules, signed), settleOf(signed))
  if (kind !== 'permit-paid-otherwise') return
  // The same amount between the same accounts, but not this permit's money, which is spent and never returns.
  chain.addStranger({ kind: 'pay', from: owner, to: witness.to, value: signed.amount })
  chain.addStranger({ kind: 'give-up', owner, nonce })
}
