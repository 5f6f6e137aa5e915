import { encodePermit2Settle, type Hex } from '@purser/protocol'
import { type Permit, permitText } from './permits.ts'
import {
  type Authorization,
  authorizationText,
  logsOfMove,
  moneyOf,
  type Rules,
  type SimLog,
  type TokenCall,
} from './token.ts'
import { signatureOf } from './words.ts'

/** What a payer signed, in either form. `amount` is the part of a permit to charge. */
export type Signed =
  | { readonly form: 'eip3009'; readonly authorization: Authorization }
  | { readonly form: 'permit2'; readonly permit: Permit; readonly amount: bigint }

/** A key of the money that it moves. */
export function moneyKey(signed: Signed): string {
  return signed.form === 'eip3009' ? moneyOf(signed.authorization) : permitText(signed.permit)
}

export function textOf(signed: Signed): string {
  return signed.form === 'eip3009' ? authorizationText(signed.authorization) : permitText(signed.permit)
}

/** The call that carries it, with a signature that a chain with these rules accepts. */
export function callOf({ signed: made }: Rules, signed: Signed): TokenCall {
  const signature = made.get(textOf(signed)) ?? signatureOf(textOf(signed))
  if (signed.form === 'eip3009') return { kind: 'transfer', authorization: signed.authorization, signature }
  return { kind: 'permit', permit: signed.permit, amount: signed.amount, signature }
}

/** The target and call data that settle a permit; undefined for anything else. */
export function settleOf(signed: Signed): { readonly to: string; readonly input: Hex } | undefined {
  if (signed.form !== 'permit2') return undefined
  const { permit, amount } = signed
  const input = encodePermit2Settle({
    transfer: permit,
    amount,
    signature: `0x${'00'.repeat(65)}`,
    permit2612: undefined,
  })
  return { to: permit.spender, input }
}

/** The logs of its money moving, which a lying node can also invent. */
export function logsOfMoney(rules: Rules, signed: Signed): readonly SimLog[] {
  if (signed.form === 'eip3009') return logsOfMove(rules, signed.authorization)
  const { owner, witness } = signed.permit
  const authorization = { from: owner, to: witness.to, value: signed.amount, validBefore: 0n, nonce: signatureOf('') }
  return logsOfMove(rules, authorization).slice(1)
}
