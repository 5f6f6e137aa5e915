import { isFinalAtDepth } from '@purser/protocol'
import type { Chain, Receipt } from '../../../chain/port.ts'
import { isProblem } from '../../../platform/errors.ts'
import { EvmAddress } from '../../../platform/wire.ts'
import { carriesRelays, findUse, movedIn, nonceStates, type RelayPayload } from '../../relayer/index.ts'
import { fail } from '../errors.ts'
import { showsTransfer } from '../methods/mpp-tempo/follow.ts'
import type { Ctx } from '../ports.ts'
import { payloadOf } from '../void.ts'
import type { RefundableRow } from './store.ts'

/** Seconds after which to retry for a payment whose block is not final. */
const finalSeconds = 15
/** Milliseconds after settlement for which nodes are expected to keep a receipt and its logs. */
const receiptMsMin = 86_400_000
/** Most requests to each node for logs that it may have forgotten, while a caller waits. */
const logRequestsMax = 100

/** Whether the payment is in a final block. `undone`: a reorganization removed it permanently. */
type Standing = 'paid' | 'undone' | 'undecided'

/**
 * Refuses a payment whose block a reorganization can still undo, or has undone. The refund leaves another wallet, so it would be paid even if
 * the payer had spent the money elsewhere in the next branch. The payee cannot spend what the payment brought before that either.
 */
export async function refuseUndoable(ctx: Pick<Ctx, 'chains' | 'clock' | 'db'>, payment: RefundableRow): Promise<void> {
  const { network: name, txHash, settledAt } = payment
  const network = ctx.chains.configured.find((one) => one.name === name)
  if (network === undefined || isFinalAtDepth(network) || txHash === null || settledAt === null) return
  const isOld = ctx.clock.now().getTime() - settledAt.getTime() > receiptMsMin
  const standing = await standingOf({ db: ctx.db, chain: ctx.chains.on(network) }, { ...payment, txHash, isOld })
  if (standing === 'paid') return
  if (standing === 'undone')
    throw fail('payment-not-refundable', {
      detail:
        'A reorganization of the chain removed the payment, and its final blocks do not contain it. Nothing was paid.',
    })
  const detail = 'A reorganization can still undo the payment. It can be refunded once its block is final.'
  throw fail('payment-not-refundable', { detail, retryAfterSeconds: finalSeconds })
}

interface On {
  readonly db: Ctx['db']
  readonly chain: Chain
}

type Shown = Pick<
  RefundableRow,
  'asset' | 'claimKey' | 'settlement' | 'validBefore' | 'payTo' | 'payer' | 'rawAmount' | 'createdAt'
> & {
  readonly txHash: `0x${string}`
  readonly isOld: boolean
}

/**
 * Reads whether the transfer of the money is final. The transaction may be in another block than it was, without the money: a batch goes on if one of its
 * payments fails, and a contract may settle another permit. The nonce of the signature then shows whether the money moved.
 */
async function standingOf(on: On, shown: Shown): Promise<Standing> {
  const { isOld, txHash, createdAt: since } = shown
  const { network } = on.chain
  const seen = await receiptOf(on.chain, shown)
  if (seen === 'undecided') return seen
  const payload = signedPayload(shown)
  if (payload === undefined) return sentStanding(shown, seen)
  const isMoved = seen.isConfirmed && movedIn(seen.receipt)(payload)
  if (isMoved && (payload.kind !== 'permit2' || (await carriesRelays(on.db, network, txHash)))) return 'paid'
  const [state] = await nonceStates(on.chain, [payload], network.depositFinality)
  if (state !== 'used') return state === 'expired' ? 'undone' : 'undecided'
  if (isOld && !seen.isConfirmed) return usedStanding(on, payload, since)
  const { outcome } = await findUse(on, payload, { since, carrier: isMoved ? txHash : undefined })
  return outcome === 'settled' ? 'paid' : outcome === 'lost' ? 'undone' : outcome
}

/**
 * Returns the signed authorization or permit of a payment that another account's transaction settles; undefined for a payment that the payer sent as
 * a transaction. Of an authorization whose signature was dropped (archive/signed-bytes.ts), the claim still names the nonce: it is enough to read the
 * chain, not to send.
 */
function signedPayload({ asset, settlement, ...payment }: Shown): RelayPayload | undefined {
  if (settlement !== null) return settlement.kind === 'tempo' ? undefined : payloadOf({ asset, settlement })
  const nonce = /^eip3009:.*:(?<nonce>0x[0-9a-f]{64})$/.exec(payment.claimKey ?? '')?.groups?.nonce
  if (nonce === undefined || payment.payer === null) return undefined
  return {
    kind: 'eip3009',
    token: asset,
    from: EvmAddress.parse(payment.payer),
    to: payment.payTo,
    value: payment.rawAmount.toString(),
    validAfter: '0',
    validBefore: String(Math.floor((payment.validBefore?.getTime() ?? 0) / 1_000)),
    nonce: `0x${nonce.slice(2)}`,
    signature: { kind: 'bytes', signature: '0x' },
    deployment: null,
  }
}

/** The receipt that a majority confirms at deposit finality, or the one that a node still has of a final block, if any. */
type Seen =
  | { readonly isConfirmed: true; readonly receipt: Receipt }
  | { readonly isConfirmed: false; readonly receipt: Receipt | undefined }

/** `undecided`: the block is not final, or the nodes contradict each other about a receipt that they should all have. */
async function receiptOf(chain: Chain, { txHash, isOld }: Shown): Promise<Seen | 'undecided'> {
  const finality = chain.network.depositFinality
  const [own] = (await chain.lookUp([txHash])).receipts
  if (own === 'unread') return 'undecided'
  const receipt = own && ((await chain.findReceipts([txHash]))[0]?.receipt ?? own)
  if (receipt === undefined) return { isConfirmed: false, receipt }
  const [verdict] = await chain.confirmReceipts([receipt], finality)
  if (verdict === 'yes') return { isConfirmed: true, receipt }
  if (verdict === 'no' || !isOld) return 'undecided'
  const { block } = await chain.stateAt([], { finality })
  return receipt.blockNumber <= block.number ? { isConfirmed: false, receipt } : 'undecided'
}

/** For a payment that its payer sent as a transaction on Tempo, which no other transaction can make. */
function sentStanding({ isOld, settlement, ...payment }: Shown, { isConfirmed, receipt }: Seen): Standing {
  if (receipt === undefined) return isOld ? 'paid' : 'undecided'
  const { asset: token, payTo: to, rawAmount: amount } = payment
  const memo = settlement?.kind === 'tempo' ? settlement.memo : undefined
  const promised = { token, from: EvmAddress.parse(payment.payer), to, amount, memo }
  if (showsTransfer(receipt, promised)) return 'paid'
  return isConfirmed ? 'undone' : 'undecided'
}

/**
 * For a used nonce whose receipt too few nodes still have. It counts as used for this payment unless a log shows otherwise. Nodes may also have
 * pruned the logs: they then return none, or an error.
 */
async function usedStanding(on: On, payload: RelayPayload, since: Date): Promise<Standing> {
  try {
    const use = await findUse(on, payload, { since, requestsMax: logRequestsMax })
    return use.outcome === 'lost' && use.isLogged ? 'undone' : 'paid'
  } catch (error) {
    if (isProblem(error, 'chain-unavailable')) return 'paid'
    throw error
  }
}
