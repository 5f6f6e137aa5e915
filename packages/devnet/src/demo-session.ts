import { createPurser, type VaultEvent } from '@purser/sdk'
import { createPayingFetch, paymentOf } from '@purser/sdk/pay'
import { privateKeyToAccount } from 'viem/accounts'
import { type Balances, balances, blockOf, type Cast, inWords, logsOf } from './demo-cast.ts'
import { demoPrice, rawPrice } from './demo-price.ts'
import { researchEvents } from './demo-research.ts'
import { expectTrue, type Step } from './narrator.ts'
import { isRecord } from './rpc.ts'

/** The agent's results when the research is done. */
export interface Research {
  readonly vaultId: string
  /** Grants read access to that one vault. */
  readonly token: string
  readonly proof: unknown
  /** The transaction that paid for it. */
  readonly txHash: string
}

/** An agent with a daily budget of one call's price. */
interface Agent {
  readonly pay: typeof globalThis.fetch
}

/** The purchase of the first call. */
interface Opened {
  readonly vaultId: string
  readonly token: string
  readonly txHash: string
  /** The public part of the session. */
  readonly sessionId: string
}

const sessionHeader = 'X-Service-Session-Id'
/** The demo fails when an event takes longer. */
const watchMsMax = 20_000

/** One payment buys three calls and a vault. The agent watches the vault's events live. */
export async function runSessionSteps(cast: Cast, step: Step): Promise<Research> {
  const agent = agentOf(cast)
  const before = await balances(cast, cast.onBase)
  const opened = await step("An agent with Purser's own paying fetch opens a research session", () =>
    openResearch(cast, agent),
  )
  const watched = watch(cast, opened)
  await step('It watches its vault with its access token', () => firstEvent(watched, opened))
  await step('The second call costs nothing: the handler fills the vault, and the agent sees it live', () =>
    fillVault(cast, agent, watched),
  )
  const proof = await step(
    'The third call costs nothing either: the handler seals the vault, and the stream ends',
    () => sealVault(cast, agent, watched),
  )
  await step('Chain and log agree: three calls, one payment', () => paidOnce(cast, opened, before))
  await step("The session's id without its secret grants no access", () => idAloneRefused(cast, opened))
  return { vaultId: opened.vaultId, token: opened.token, proof, txHash: opened.txHash }
}

function agentOf({ dev }: Cast): Agent {
  const limits = { perCall: demoPrice, perDay: demoPrice, networks: ['base-sepolia'] } as const
  return { pay: createPayingFetch({ signer: privateKeyToAccount(dev.payer.privateKey), limits }) }
}

async function openResearch(cast: Cast, { pay }: Agent) {
  const response = await pay(`${cast.provider.researchUrl}/open`, { method: 'POST' })
  const body: unknown = await response.json()
  expectTrue(response.status === 200, `the call is answered ${response.status}: ${JSON.stringify(body)}`)
  const { txHash } = paymentOf(response) ?? {}
  const block = await blockOf(cast.onBase, txHash)
  const [sessionId = ''] = (response.headers.get(sessionHeader) ?? '').split('.')
  expectTrue(/^sess_[0-9a-z]{26}$/.test(sessionId), 'the answer carries no session')
  expectTrue(isRecord(body), 'the answer is no object')
  const { vaultId, token } = body
  expectTrue(typeof vaultId === 'string' && typeof token === 'string', 'the answer names no vault')
  const value: Opened = { vaultId, token, txHash: txHash ?? '', sessionId }
  return { value, summary: `402, then 200: ${txHash} in block ${block} bought ${sessionId} with ${vaultId}` }
}

/** The vault's stream as the agent reads it. */
interface Watched {
  readonly events: AsyncIterator<VaultEvent>
  /** Returns the number of times that the stream was opened: after a break it is resumed. */
  readonly openings: () => number
}

/** Watches from the vault's first event on. The agent authenticates with the token alone. */
function watch({ dev }: Cast, { vaultId, token }: Opened): Watched {
  let openings = 0
  const counting: typeof fetch = (input, init) => {
    openings += 1
    return fetch(input, init)
  }
  const { vaults } = createPurser({ apiKey: token, baseUrl: dev.baseUrl, fetch: counting })
  const from = new Date(0).toISOString()
  const events = vaults.events(vaultId, { from }, { signal: AbortSignal.timeout(watchMsMax) })
  return { events: events[Symbol.asyncIterator](), openings: () => openings }
}

async function firstEvent({ events }: Watched, { vaultId }: Opened) {
  const { value: event, done } = await events.next()
  expectTrue(done !== true && event.type === 'vault.created', 'the stream does not begin with vault.created')
  expectTrue(event.vaultId === vaultId, `the event is of ${event.vaultId}`)
  return { value: undefined, summary: `GET /vaults/${vaultId}/events: ${event.type}, and the stream stays open` }
}

async function fillVault({ provider }: Cast, { pay }: Agent, { events, openings }: Watched) {
  const [, seen] = await Promise.all([
    pay(`${provider.researchUrl}/fill`, { method: 'POST' }).then(expectUnpaid),
    typesUntil(events, researchEvents.at(-1)),
  ])
  expectTrue(seen.join() === researchEvents.join(), `the agent saw ${seen.join(', ')}`)
  expectTrue(openings() === 1, `the stream was opened ${openings()} times`)
  return { value: undefined, summary: `200 without a payment; on the open stream came ${seen.join(', ')}` }
}

async function sealVault({ provider }: Cast, { pay }: Agent, { events, openings }: Watched) {
  const [body, seen] = await Promise.all([
    pay(`${provider.researchUrl}/seal`, { method: 'POST' }).then(expectUnpaid),
    typesUntil(events, undefined),
  ])
  expectTrue(seen.join() === 'vault.sealed', `the agent saw ${seen.join(', ')}`)
  expectTrue(openings() === 1, `the stream was opened ${openings()} times`)
  expectTrue(isRecord(body) && isRecord(body.proof), 'the answer has no proof')
  return { value: body.proof, summary: '200 without a payment, and the proof; the last event was vault.sealed' }
}

/** Returns the types of the next events, up to the first of type `last` or the end of the stream. */
async function typesUntil(events: Watched['events'], last: string | undefined): Promise<string[]> {
  const types: string[] = []
  do {
    const { value, done } = await events.next().catch((error: unknown) => {
      throw new Error(`after ${types.join(', ') || 'nothing'} the stream broke off or no event came`, { cause: error })
    })
    if (done === true) break
    types.push(value.type)
  } while (types.at(-1) !== last)
  return types
}

async function expectUnpaid(response: Response): Promise<unknown> {
  const body: unknown = await response.json()
  expectTrue(response.status === 200, `the call is answered ${response.status}: ${JSON.stringify(body)}`)
  expectTrue(paymentOf(response) === undefined, 'the call was paid for')
  return body
}

async function paidOnce(cast: Cast, { txHash, sessionId, vaultId }: Opened, before: Balances) {
  const after = await balances(cast, cast.onBase)
  const [paid, received] = [before.payer - after.payer, after.receiver - before.receiver]
  expectTrue(paid === rawPrice && received === rawPrice, `${inWords(cast.onBase, paid)} moved`)
  const [log, ...others] = (await logsOf(cast, cast.onBase)).filter(({ route }) =>
    route?.startsWith(cast.provider.researchUrl),
  )
  expectTrue(log !== undefined && others.length === 0, `the log has ${others.length} entries more than one`)
  expectTrue(log.txHash === txHash && log.status === 'settled', 'the log names another transaction')
  expectTrue(log.sessionId === sessionId && log.vaultId === vaultId, 'the log names another session or vault')
  return { value: undefined, summary: `${inWords(cast.onBase, paid)} moved; ${log.paymentId} names session and vault` }
}

async function idAloneRefused({ provider }: Cast, { sessionId }: Opened) {
  const headers = { [sessionHeader]: sessionId }
  const { status } = await fetch(`${provider.researchUrl}/fill`, { method: 'POST', headers })
  expectTrue(status === 402, `the call is answered ${status}`)
  return { value: undefined, summary: `402: ${sessionId}, without its secret, grants no access` }
}
