import { randomBytes } from 'node:crypto'
import { request as send } from 'undici'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { type TransferAttempt, post as transfer, type Wallet } from '../crash/transfer-load.ts'

/** A vault that its owner filled and sealed, with the documents that it acknowledged. */
interface SealedVault {
  readonly id: string
  readonly documents: readonly string[]
}

export interface MixedLoad {
  /** Answered requests by operation. */
  readonly counts: Readonly<Record<string, number>>
  /** Requests without an answer, and answers that refuse something. A user of a running service gets none. */
  readonly faults: readonly string[]
  readonly vaults: readonly SealedVault[]
  readonly transfers: readonly TransferAttempt[]
  answered(): number
  /** Resolves when what was begun has ended. */
  stop(): Promise<void>
}

export interface MixedLoadOptions {
  readonly where: () => Promise<string>
  readonly apiKey: string
  readonly walletId: string
  /** Wallets that make transfers. */
  readonly wallets: readonly Wallet[]
}

const documentsOfOne = 3
const lists = [
  '/payments/logs?limit=20',
  '/payments/logs/summary',
  '/vaults?limit=20',
  '/events?limit=20',
  '/webhooks',
  '/wallet-infra/byo-wallets',
  '/wallet-infra/master-wallets',
  '/wallet-infra/transfers?limit=20',
  '/billing/usage',
  '/organisations/current/audit-log?limit=20',
  '/requests?limit=20',
]

/** Users that make challenges, fill and seal vaults, read lists and make transfers until they are stopped. Nobody sends a request twice. */
export function startMixedLoad({ where, apiKey, walletId, wallets }: MixedLoadOptions): MixedLoad {
  const counts: Record<string, number> = {}
  const faults: string[] = []
  const vaults: SealedVault[] = []
  const transfers: TransferAttempt[] = []
  let [isOver, answered] = [false, 0]
  const note = (what: string, status: number, body: unknown): void => {
    counts[what] = (counts[what] ?? 0) + 1
    answered += 1
    if (status >= 300) faults.push(`${what}: ${status} ${JSON.stringify(body)}`)
  }
  /** The body of the answer; undefined without one. */
  const call = async (
    method: 'GET' | 'POST',
    at: string,
    body?: unknown,
  ): Promise<Record<string, unknown> | undefined> => {
    const what = `${method} ${at.replace(/\?.*/, '').replace(/\/v[a-z]*_\w+/, '/{id}')}`
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
    const sent = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) }
    try {
      const answer = await send((await where()) + at, sent)
      const read = (await answer.body.json()) as Record<string, unknown>
      note(what, answer.statusCode, read)
      return answer.statusCode < 300 ? read : undefined
    } catch (error) {
      faults.push(`${what}: ${error}`)
      return undefined
    }
  }
  const challenge = async (): Promise<void> => {
    await call('POST', '/payments/challenge', { walletId, resource: 'https://api.example.com/report', price: '0.01' })
  }
  const fill = async (): Promise<void> => {
    const created = await call('POST', '/vaults', {})
    if (created === undefined) return
    const id = String(created.id)
    const documents: string[] = []
    for (let index = 0; index < documentsOfOne; index++) {
      const data = { content: randomBytes(200).toString('hex') }
      const stored = await call('POST', `/vaults/${id}/documents`, { name: `document-${index}`, data })
      if (stored !== undefined) documents.push(String(stored.id))
    }
    await call('POST', `/vaults/${id}/emit`, { event: 'filled', payload: { documents: documents.length } })
    const sealed = await call('POST', `/vaults/${id}/seal`, { summary: 'whole' })
    if (sealed !== undefined) vaults.push({ id, documents })
    await call('GET', `/vaults/${id}/proof`)
  }
  const read = async (turn: number): Promise<void> => {
    await call('GET', lists[turn % lists.length] ?? '')
  }
  const pay = async (turn: number): Promise<void> => {
    const from = wallets[transfers.length % wallets.length]
    if (from === undefined) throw new Error('no wallets')
    const token = from.sends[turn % from.sends.length] ?? 'USDC'
    const to = privateKeyToAddress(generatePrivateKey())
    const wish: TransferAttempt = { from, to, token, key: `transfer-${transfers.length}` }
    transfers.push(wish)
    try {
      const { status, body } = await transfer({ apiKey, where, isOlder: true }, wish, turn)
      note('POST /wallet-infra/transfer', status, body)
      wish.answer = { status, id: String(body.id), reported: String(body.status) }
    } catch (error) {
      faults.push(`POST /wallet-infra/transfer: ${error}`)
    }
  }
  const users = [challenge, fill, fill, read, read, pay, pay].map(async (act) => {
    for (let turn = 0; !isOver; turn++) await act(turn)
  })
  return {
    counts,
    faults,
    vaults,
    transfers,
    answered: () => answered,
    async stop() {
      isOver = true
      await Promise.all(users)
    },
  }
}
