import { createHash, randomBytes } from 'node:crypto'
import { formOf, upload } from '../files/uploads.ts'
import { type Answer, codeOf, request } from '../world.ts'
import type { Fleet } from './fleet.ts'

/** One write as its sender sees it. */
interface Write {
  readonly name: string
  readonly kind: 'document' | 'file' | 'event'
  /** Sent again with its Idempotency-Key until there is an answer. */
  readonly isKeyed: boolean
  /** The acknowledged id; undefined without an answer. */
  id?: string
  sha256?: string
  /** Whether it was first sent before a seal of its vault was acknowledged. Its answer may be repeated after. */
  readonly wasBeforeSeal: boolean
  refusal?: string
}

/** A vault that is created, filled by several concurrent writers and sealed meanwhile. */
export interface Life {
  readonly vaultId: string
  readonly writes: Write[]
  /** Answers that sealed it; all must be equal. */
  readonly seals: { readonly sealedAt: string; readonly manifestHash: string }[]
  lostSeals: number
}

export interface VaultLoad {
  readonly lives: readonly Life[]
  readonly counts: Record<string, number>
  acknowledged(): number
  /** Waits until every life has ended. */
  stop(): Promise<void>
}

const writersOfOne = 4

/** Fills and seals vaults, this many at a time, at whichever process runs. */
export function startVaultLoad(options: {
  readonly fleet: Fleet
  readonly key: string
  readonly atOnce: number
  readonly random: () => number
}): VaultLoad {
  const { fleet, key, atOnce, random } = options
  const lives: Life[] = []
  const counts: Record<string, number> = {}
  let [isOver, acknowledged, begun] = [false, 0, 0]
  const count = (what: string): void => {
    counts[what] = (counts[what] ?? 0) + 1
  }
  const someBase = () => fleet.where(Math.floor(random() * 100))
  /** One attempt; undefined when the connection broke. */
  const once = async (what: string, send: (base: string) => Promise<Answer>): Promise<Answer | undefined> => {
    const response = await send(await someBase()).catch(() => undefined)
    count(`${what} ${response === undefined ? 'lost' : response.status < 300 ? 'done' : codeOf(response)}`)
    return response
  }
  /** Retries until there is a final answer. */
  const insist = async (what: string, send: (base: string) => Promise<Answer>): Promise<Answer> => {
    for (let attempt = 0; attempt < 500; attempt++) {
      const response = await once(what, send)
      if (response !== undefined && response.status !== 503 && codeOf(response) !== 'idempotency-in-progress')
        return response
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    throw new Error(`${what}: no answer`)
  }
  const post = (path: string, body: unknown, idempotencyKey?: string) => (base: string) => {
    const headers: Record<string, string> = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
    return request(base, { key, method: 'POST', path, body, headers })
  }
  const write = async (life: Life, writer: number): Promise<'go on' | 'stop'> => {
    const kind = (['document', 'file', 'event'] as const)[Math.floor(random() * 3)] ?? 'document'
    // A file's key stays locked for a minute when its process died.
    const isKeyed = kind !== 'file' && random() < 0.5
    const wasBeforeSeal = life.seals.length === 0
    const made: Write = { name: `${kind}-${writer}-${life.writes.length}`, kind, isKeyed, wasBeforeSeal }
    life.writes.push(made)
    const send = senderOf(life, made)
    const response = isKeyed ? await insist(kind, send) : await once(kind, send)
    if (response === undefined || response.status === 503) return 'go on'
    if (response.status !== 201) made.refusal = codeOf(response)
    else {
      made.id = String(response.body.id ?? response.body.eventId)
      acknowledged += 1
    }
    return made.refusal === undefined ? 'go on' : 'stop'
  }
  const senderOf = (life: Life, made: Write): ((base: string) => Promise<Answer>) => {
    const idempotencyKey = made.isKeyed ? `${life.vaultId}-${made.name}` : undefined
    if (made.kind === 'event')
      return post(`/vaults/${life.vaultId}/emit`, { event: made.name, payload: { at: 1 } }, idempotencyKey)
    const content = randomBytes(made.kind === 'file' ? 20_000 + Math.floor(random() * 400_000) : 200)
    if (made.kind === 'document') {
      const data = { content: content.toString('hex') }
      return post(`/vaults/${life.vaultId}/documents`, { name: made.name, data }, idempotencyKey)
    }
    made.sha256 = createHash('sha256').update(content).digest('hex')
    const body = formOf({ filename: made.name, content })
    return (base) => upload(base, { key, vaultId: life.vaultId, body })
  }
  const live = async (): Promise<void> => {
    const creation = `life-${begun++}`
    const created = await insist('create', post('/vaults', {}, creation))
    if (created.status !== 201) throw new Error(`no vault: ${JSON.stringify(created.body)}`)
    const life: Life = { vaultId: String(created.body.id), writes: [], seals: [], lostSeals: 0 }
    lives.push(life)
    const enough = 5 + Math.floor(random() * 40)
    const writers = Array.from({ length: writersOfOne }, async (_, writer) => {
      while ((await write(life, writer)) === 'go on');
    })
    while (life.writes.filter(({ id }) => id !== undefined).length < enough && !isOver)
      await new Promise((resolve) => setTimeout(resolve, 5))
    await seal(life)
    await Promise.all(writers)
  }
  const seal = async (life: Life): Promise<void> => {
    const send = post(`/vaults/${life.vaultId}/seal`, { summary: 'whole' }, `seal-${life.vaultId}`)
    const response = await insist('seal', send)
    if (response.status !== 200) throw new Error(`not sealed: ${JSON.stringify(response.body)}`)
    const { sealedAt, manifestHash } = response.body
    life.seals.push({ sealedAt: String(sealedAt), manifestHash: String(manifestHash) })
  }
  const agents = Array.from({ length: atOnce }, async () => {
    while (!isOver) await live()
  })
  return {
    lives,
    counts,
    acknowledged: () => acknowledged,
    async stop() {
      isOver = true
      await Promise.all(agents)
    },
  }
}
