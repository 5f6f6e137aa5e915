import { type Address, checksumAddress, type Hex, type Network } from '@purser/protocol'
import type { MppPurchase } from '../../mpp/purchase.ts'
import { commonFields } from '../../new-payment.ts'
import type { Ctx } from '../../ports.ts'
import type { NewPayment } from '../../store.ts'
import type { Owed } from './transaction.ts'

/** A purchase on Tempo, with the payment that it requires. */
export interface TempoPurchase extends MppPurchase {
  readonly owed: Owed
}

/** Returns the one key for a transaction, whether pulled or pushed (decisions.md, section 3). */
export function transactionClaim(network: Network, hash: Hex): string {
  return `tx:${network.caip2}:${hash.toLowerCase()}`
}

/** Returns the fields that the rows of pulled and pushed payments share. */
export function tempoFields(
  ctx: Ctx,
  { request, wallet, token, network, challenge, rawAmount }: TempoPurchase,
  { hash, payer }: { readonly hash: Hex; readonly payer: Address },
) {
  return {
    ...commonFields(ctx, request, wallet, token),
    protocol: 'mpp',
    protocolVersion: null,
    scheme: 'charge',
    challengeId: challenge.id,
    claimKey: transactionClaim(network, hash),
    rawAmount,
    payer: checksumAddress(payer, ctx.signatures.keccak),
    txHash: hash,
  } as const satisfies Partial<NewPayment>
}
