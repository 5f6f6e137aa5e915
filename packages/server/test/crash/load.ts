import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { toHex } from 'viem'
import { type Answer, codeOf, request } from '../world.ts'
import { type Deployment, verifyBody } from './stage.ts'

/** One payment from its buyer's view: the signed payload, and the service's acknowledgments. */
export interface Purchase {
  readonly payer: `0x${string}`
  readonly nonce: `0x${string}`
  readonly credential: string
  /** Sent with a separate Idempotency-Key for each step. */
  readonly keyed: boolean
  /** Settles without waiting. */
  readonly async: boolean
  verified?: { readonly paymentId: string; readonly settlementToken: string; readonly withKey: boolean }
  /** A copy was refused as a duplicate: the service has it, though its answer was lost. */
  recorded?: true
  settled?: { readonly status: 200 | 202; readonly txHash: string | null; readonly withKey: boolean }
}

export interface Load {
  readonly purchases: readonly Purchase[]
  /** The number of each outcome by step; `lost` when the connection broke. */
  readonly counts: Readonly<Record<string, number>>
  /** Responses that a buyer must never get, whichever process dies. */
  readonly faults: readonly string[]
  acknowledged(): number
  /** The number of 503 answers so far. */
  unavailable(): number
  /** Each buyer finishes the current purchase. */
  stop(): Promise<void>
}

export interface LoadOptions {
  readonly deployment: Deployment
  /** The service's current address; waits while it is down. */
  readonly where: () => Promise<string>
  readonly buyers: number
}

const attemptsMax = 2_000
const retryMs = 25

/** Buyers that verify and settle one payment after the other, and retry until they have an answer. */
export function startLoad({ deployment, where, buyers }: LoadOptions): Load {
  const purchases: Purchase[] = []
  const counts: Record<string, number> = {}
  const faults: string[] = []
  let stopping = false
  let acknowledged = 0
  let unavailable = 0

  const send = async (
    step: 'verify' | 'settle',
    body: unknown,
    headers: Record<string, string>,
  ): Promise<Answer | 'lost'> => {
    const base = await where()
    try {
      const response = await request(base, {
        key: deployment.testKey,
        method: 'POST',
        path: `/payments/${step}`,
        body,
        headers,
      })
      count(counts, `${step} ${response.status}${response.status < 300 ? '' : ` ${codeOf(response)}`}`)
      if (response.status < 300) acknowledged += 1
      if (response.status === 503) unavailable += 1
      return response
    } catch {
      count(counts, `${step} lost`)
      return 'lost'
    }
  }
  /**
   * Retries until the answer is final. A key whose first request died half-way is given up: the step itself is safe to
   * repeat.
   */
  const insist = async (
    step: 'verify' | 'settle',
    purchase: Purchase,
    body: unknown,
  ): Promise<{ answer: Answer; withKey: boolean }> => {
    let key = purchase.keyed ? `${step}-${purchase.nonce}` : undefined
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const headers = {
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...(purchase.async ? { prefer: 'respond-async' } : {}),
      }
      const response = await send(step, body, headers)
      if (response === 'lost' || response.status === 503) await delay(retryMs)
      else if (codeOf(response) === 'idempotency-in-progress') key = undefined
      else return { answer: response, withKey: key !== undefined }
    }
    throw new Error(`${step}: no answer`)
  }
  const buy = async (purchase: Purchase): Promise<void> => {
    const { answer: response, withKey } = await insist(
      'verify',
      purchase,
      verifyBody(deployment.wallet.id, purchase.credential),
    )
    if (response.status === 409 && codeOf(response) === 'duplicate-payment') {
      purchase.recorded = true
      return
    }
    if (response.status !== 200) return void faults.push(`verify: ${JSON.stringify(response.body)}`)
    purchase.verified = {
      paymentId: String(response.body.paymentId),
      settlementToken: String(response.body.settlementToken),
      withKey,
    }
    const { paymentId, settlementToken } = purchase.verified
    const settling = await insist('settle', purchase, { paymentId, settlementToken })
    const { status, body } = settling.answer
    if (status !== 200 && status !== 202) return void faults.push(`settle: ${JSON.stringify(body)}`)
    purchase.settled = {
      status,
      txHash: typeof body.txHash === 'string' ? body.txHash : null,
      withKey: settling.withKey,
    }
  }
  const work = async (buyer: number): Promise<void> => {
    for (let turn = buyer; !stopping; turn++) {
      const purchase = await sign(deployment, turn)
      purchases.push(purchase)
      await buy(purchase)
    }
  }
  const working = Array.from({ length: buyers }, (_, buyer) => work(buyer))
  const failed = Promise.all(working).catch((error: unknown) => void faults.push(String(error)))
  return {
    purchases,
    counts,
    faults,
    acknowledged: () => acknowledged,
    unavailable: () => unavailable,
    async stop() {
      stopping = true
      await failed
    },
  }
}

/** A payment signed by one of the deployment's payers, not sent yet. */
export async function sign(
  { payers, challenge }: Pick<Deployment, 'payers' | 'challenge'>,
  turn: number,
): Promise<Purchase> {
  const payer = payers[turn % payers.length]
  if (payer === undefined) throw new Error('no payer')
  const nonce = toHex(randomBytes(32))
  const credential = await payer.credential(challenge, { sign: { nonce } })
  return { payer: payer.account.address, nonce, credential, keyed: turn % 2 === 0, async: turn % 3 === 0 }
}

function count(counts: Record<string, number>, what: string): void {
  counts[what] = (counts[what] ?? 0) + 1
}
