import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { toHex } from 'viem'
import { type Answer, codeOf, request } from '../world.ts'
import { type Deployment, verifyBody } from './stage.ts'

/** One payment as its buyer knows it: what was signed, and what the service acknowledged. */
export interface Purchase {
  readonly payer: `0x${string}`
  readonly nonce: `0x${string}`
  readonly credential: string
  /** Sent with an Idempotency-Key of its own for each step. */
  readonly keyed: boolean
  /** Asks to settle without waiting. */
  readonly async: boolean
  verified?: { readonly paymentId: string; readonly settlementToken: string; readonly withKey: boolean }
  /** A copy was refused as a duplicate: the service has it, though its answer was lost. */
  recorded?: true
  settled?: { readonly status: 200 | 202; readonly txHash: string | null; readonly withKey: boolean }
}

export interface Load {
  readonly purchases: readonly Purchase[]
  /** How often each step was answered how; `lost` when the connection broke. */
  readonly counts: Readonly<Record<string, number>>
  /** Answers that no buyer should get, whatever dies. */
  readonly faults: readonly string[]
  acknowledged(): number
  /** How many answers were 503 so far. */
  unavailable(): number
  /** Each buyer ends the purchase that is under way. */
  stop(): Promise<void>
}

export interface LoadOptions {
  readonly deployment: Deployment
  /** Where the service is now; waits while it is nowhere. */
  readonly where: () => Promise<string>
  readonly buyers: number
}

const attemptsMax = 2_000
const retryMs = 25

/** Buyers who verify and settle one payment after the other, and who ask again for as long as they have no answer. */
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
      const answer = await request(base, {
        key: deployment.testKey,
        method: 'POST',
        path: `/payments/${step}`,
        body,
        headers,
      })
      count(counts, `${step} ${answer.status}${answer.status < 300 ? '' : ` ${codeOf(answer)}`}`)
      if (answer.status < 300) acknowledged += 1
      if (answer.status === 503) unavailable += 1
      return answer
    } catch {
      count(counts, `${step} lost`)
      return 'lost'
    }
  }
  /** Sends until the answer is one to keep. A key whose first request died half-way is given up: the step itself is safe to repeat. */
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
      const answer = await send(step, body, headers)
      if (answer === 'lost' || answer.status === 503) await delay(retryMs)
      else if (codeOf(answer) === 'idempotency-in-progress') key = undefined
      else return { answer, withKey: key !== undefined }
    }
    throw new Error(`${step}: no answer`)
  }
  const buy = async (purchase: Purchase): Promise<void> => {
    const { answer, withKey } = await insist('verify', purchase, verifyBody(deployment.wallet.id, purchase.credential))
    if (answer.status === 409 && codeOf(answer) === 'duplicate-payment') {
      purchase.recorded = true
      return
    }
    if (answer.status !== 200) return void faults.push(`verify: ${JSON.stringify(answer.body)}`)
    purchase.verified = {
      paymentId: String(answer.body.paymentId),
      settlementToken: String(answer.body.settlementToken),
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

/** A payment signed by one of the deployment's payers, not sent to anybody yet. */
export async function sign(
  { payers, challenge }: Pick<Deployment, 'payers' | 'challenge'>,
  turn: number,
): Promise<Purchase> {
  const payer = payers[turn % payers.length]
  if (payer === undefined) throw new Error('nobody pays')
  const nonce = toHex(randomBytes(32))
  const credential = await payer.credential(challenge, { sign: { nonce } })
  return { payer: payer.account.address, nonce, credential, keyed: turn % 2 === 0, async: turn % 3 === 0 }
}

function count(counts: Record<string, number>, what: string): void {
  counts[what] = (counts[what] ?? 0) + 1
}
