import { Agent, type IncomingMessage, request } from 'node:http'
import { z } from 'zod'
import { type Purchase, sign } from './load.ts'
import { type Deployment, verifyBody } from './stage.ts'

/** One request, and how far it came. */
export interface Exchange {
  readonly step: 'verify' | 'settle'
  readonly purchase: Purchase
  /** The whole request had left this process before the service received the signal. */
  sentBeforeSignal: boolean
  outcome: 'under-way' | 'answered' | 'cut' | 'refused'
  status?: number
  error?: string
}

export interface Clients {
  readonly exchanges: readonly Exchange[]
  readonly purchases: readonly Purchase[]
  underWay(step: Exchange['step']): number
  /** Call this right before the signal. */
  signal(): void
  /** Resolves when every client's connection has been refused. */
  readonly ended: Promise<unknown>
}

const Verified = z.object({ paymentId: z.string(), settlementToken: z.string() })
const Settled = z.object({ txHash: z.string().nullable() })

/** Clients that verify and settle until the service refuses connections. Every second one keeps its connection. */
export function startClients(deployment: Deployment, base: string, clients: number): Clients {
  const exchanges: Exchange[] = []
  const purchases: Purchase[] = []
  let signalled = false
  const exchange = async (agent: Agent | false, step: Exchange['step'], purchase: Purchase, body: unknown) => {
    const entry: Exchange = { step, purchase, sentBeforeSignal: false, outcome: 'under-way' }
    exchanges.push(entry)
    const headers = {
      authorization: `Bearer ${deployment.testKey}`,
      'content-type': 'application/json',
      ...(purchase.keyed ? { 'idempotency-key': `${step}-${purchase.nonce}` } : {}),
    }
    const sent = (): void => {
      entry.sentBeforeSignal = !signalled
    }
    const text = await send({ agent, url: `${base}/payments/${step}`, headers, body }, entry, sent)
    return { status: entry.status, text }
  }
  const buy = async (agent: Agent | false, purchase: Purchase): Promise<void> => {
    const verify = await exchange(agent, 'verify', purchase, verifyBody(deployment.wallet.id, purchase.credential))
    if (verify.status !== 200) return
    const verified = Verified.parse(JSON.parse(verify.text))
    purchase.verified = { ...verified, withKey: purchase.keyed }
    const { status, text } = await exchange(agent, 'settle', purchase, verified)
    if (status !== 200 && status !== 202) return
    purchase.settled = { status, txHash: Settled.parse(JSON.parse(text)).txHash, withKey: purchase.keyed }
  }
  const work = async (client: number): Promise<void> => {
    const agent = client % 2 === 0 ? new Agent({ keepAlive: true, maxSockets: 1 }) : false
    for (let turn = client; !signalled; turn++) {
      const purchase = await sign(deployment, turn + Math.floor(turn / 4))
      purchases.push(purchase)
      await buy(agent, purchase)
    }
    if (agent !== false) agent.destroy()
  }
  return {
    exchanges,
    purchases,
    underWay: (step) => exchanges.filter((entry) => entry.step === step && entry.outcome === 'under-way').length,
    signal() {
      signalled = true
    },
    ended: Promise.all(Array.from({ length: clients }, (_, client) => work(client))),
  }
}

interface Outgoing {
  readonly agent: Agent | false
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/** Returns the body; an empty text when there is none or it is incomplete. */
function send({ agent, url, headers, body }: Outgoing, entry: Exchange, sent: () => void): Promise<string> {
  return new Promise((resolve) => {
    const failed = (error: Error & { code?: string }): void => {
      if (entry.outcome !== 'under-way') return
      entry.outcome = error.code === 'ECONNREFUSED' ? 'refused' : 'cut'
      entry.error = `${error.code}: ${error.message}`
      resolve('')
    }
    const outgoing = request(url, { agent, method: 'POST', headers })
    outgoing.once('finish', sent)
    outgoing.once('error', failed)
    outgoing.once('response', (incoming: IncomingMessage) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      incoming.once('error', failed)
      incoming.once('end', () => {
        entry.outcome = incoming.complete ? 'answered' : 'cut'
        if (incoming.complete) entry.status = incoming.statusCode ?? 0
        resolve(text)
      })
    })
    outgoing.end(JSON.stringify(body))
  })
}
