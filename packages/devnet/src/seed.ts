import { AuthenticationError, createPurser, NotFoundError, type Purser } from '@purser/sdk'
import type { RunningServer } from '@purser/server'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import {
  createKeyAsOperator,
  foundOrganisation,
  listOrganisationsOf,
  upsertAccount,
} from '../../server/src/features/organisations/index.ts'
import { makeSignInLink } from '../../server/src/features/people/index.ts'
import { newId } from '../../server/src/platform/ids.ts'
import type { Remembered } from './dev-file.ts'

/** The first data of every local service: an organisation with a known test key, and one wallet. */
export interface Seed {
  readonly organisationId: string
  readonly apiKey: string
  readonly walletId: string
}

type Deps = RunningServer['deps']

const owner = { email: 'dev@example.com', name: 'Local developer' }
const walletChain = 'base-sepolia'

/**
 * Finds what an earlier start made, or makes what is missing. A key that is not in the database (another database, or a
 * start that was killed half-way) is replaced. The organisation stays the same as long as its database exists.
 */
export async function seed(server: RunningServer, baseUrl: string, remembered: Remembered): Promise<Seed> {
  const known = await organisationOf(baseUrl, remembered.apiKey)
  const { organisationId, apiKey } = known ?? (await makeKey(server.deps))
  const purser = createPurser({ apiKey, baseUrl })
  return { organisationId, apiKey, walletId: await ensureWallet(purser, remembered.walletId) }
}

async function organisationOf(baseUrl: string, apiKey: string | undefined) {
  if (apiKey === undefined || !/^[\x21-\x7e]+$/.test(apiKey)) return undefined
  try {
    const { id } = await createPurser({ apiKey, baseUrl }).organisations.current()
    return { organisationId: id, apiKey }
  } catch (error) {
    if (error instanceof AuthenticationError) return undefined
    throw error
  }
}

/** A new link that signs the developer's owner in. */
export async function ownersSignInLink({ deps }: RunningServer, baseUrl: string): Promise<string> {
  return makeSignInLink(deps, deps.db, { email: owner.email, baseUrl })
}

/** Makes a test key of the developer's organisation. Creates that on the enterprise plan when there is none. */
function makeKey(deps: Deps): Promise<{ organisationId: string; apiKey: string }> {
  const acting = { ...deps, actor: { kind: 'operator' }, requestId: newId('req', deps) } as const
  return deps.db.tx(async (tx) => {
    const now = deps.clock.now()
    const account = await upsertAccount(tx, { id: newId('acc', deps), ...owner, acceptedAt: now, createdAt: now })
    const earlier = (await listOrganisationsOf(tx, account.id, undefined)).at(-1)
    if (earlier !== undefined) {
      const inside = { ...acting, db: { ...deps.db, tx: <T>(work: (open: typeof tx) => Promise<T>) => work(tx) } }
      const { key } = await createKeyAsOperator(inside, earlier.id, { name: 'npm start', environment: 'test' })
      return { organisationId: earlier.id, apiKey: key }
    }
    const { organisation, apiKeys } = await foundOrganisation(acting, tx, {
      name: 'Local development',
      type: 'enterprise',
      plan: 'enterprise',
      ownerId: account.id,
      environments: ['test'],
    })
    return { organisationId: organisation.id, apiKey: apiKeys[0]?.key ?? '' }
  })
}

async function ensureWallet(purser: Purser, walletId: string | undefined): Promise<string> {
  if (walletId !== undefined && (await hasWallet(purser, walletId))) return walletId
  const wallets = await purser.wallets.byo.list().toArray({ limit: 500 })
  const earlier = wallets.findLast(({ chain }) => chain === walletChain)
  if (earlier !== undefined) return earlier.id
  const address = privateKeyToAddress(generatePrivateKey())
  const wallet = { name: 'Local development', address, chain: walletChain, supportedTokens: ['USDC'] } as const
  return (await purser.wallets.byo.create(wallet)).id
}

async function hasWallet(purser: Purser, walletId: string): Promise<boolean> {
  try {
    await purser.wallets.byo.get(walletId)
    return true
  } catch (error) {
    if (error instanceof NotFoundError) return false
    throw error
  }
}
