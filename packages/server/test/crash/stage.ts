import { type DevChain, fundNative } from '@purser/devnet'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
import { id } from '../../src/platform/ids.ts'
import { type Answer, aPayer, type Payer, request } from '../world.ts'
import { type Env, type Service, serveEnv, spawnWaiting, startService } from './service.ts'

/** A deployment as an operator sets it up: a database, a node, an organisation, and the service in a separate process. */
export interface Deployment {
  readonly env: Env
  readonly organisationId: `org_${string}`
  readonly testKey: string
  readonly liveKey: string
  readonly wallet: { readonly id: string; readonly address: `0x${string}` }
  readonly payers: readonly Payer[]
  readonly challenge: Answer
  start(): Promise<Service>
  /** Prepares a service that starts on command. */
  prepare(): ReturnType<typeof spawnWaiting>
}

const resource = 'https://api.example.com/report'
const Founded = z.object({ organisation: z.object({ id: id('org') }), apiKeys: z.array(z.object({ key: z.string() })) })

/** A version of the service: the operator's commands, and a process that serves. */
export interface Version {
  admin(
    args: readonly string[],
    env: Env,
  ): Promise<{ readonly exitCode: number; readonly stdout: string; readonly stderr: string }>
  start(env: Env): Promise<Service>
}

/** The version of these sources. */
const present: Version = { admin: (args, env) => runAdmin([...args], env), start: startService }

/** Sets up a deployment. Its service was started once and stopped in order. */
export async function aDeployment(options: {
  readonly databaseUrl: string
  readonly chain: DevChain
  readonly env?: Env
  /** The version that sets it up; default: the present one. */
  readonly version?: Version
}): Promise<Deployment> {
  const { databaseUrl, chain, version = present } = options
  const env = serveEnv(databaseUrl, { RPC_URL_BASE_SEPOLIA: chain.rpcUrl, ...options.env })
  const founded = await foundOrganisation(databaseUrl, options.env, version)
  const service = await version.start(env)
  await fundNative(chain, service.settler, 10n ** 20n)
  const payers = await Promise.all(Array.from({ length: 4 }, () => aPayer(chain)))
  const wallet = await aWallet(service.base, founded.testKey)
  const challenge = await requested(service.base, founded.testKey, '/payments/challenge', {
    walletId: wallet.id,
    resource,
    price: '0.01',
  })
  await service.end('SIGTERM')
  return {
    env,
    ...founded,
    wallet,
    payers,
    challenge,
    start: () => startService(env),
    prepare: () => spawnWaiting(env),
  }
}

/** The output of `purser admin create-organisation`. */
export async function foundOrganisation(
  databaseUrl: string,
  env: Env = {},
  version: Version = present,
): Promise<Pick<Deployment, 'organisationId' | 'testKey' | 'liveKey'>> {
  const args = [
    'admin',
    'create-organisation',
    '--name',
    'Acme',
    '--email',
    'owner@example.com',
    '--plan',
    'enterprise',
    '--format',
    'json',
  ]
  const { exitCode, stdout, stderr } = await version.admin(args, { ...env, DATABASE_URL: databaseUrl })
  if (exitCode !== 0) throw new Error(`no organisation: ${stdout}${stderr}`)
  const { organisation, apiKeys } = Founded.parse(JSON.parse(stdout))
  return { organisationId: organisation.id, testKey: apiKeys[0]?.key ?? '', liveKey: apiKeys[1]?.key ?? '' }
}

async function aWallet(base: string, key: string): Promise<Deployment['wallet']> {
  const { account } = await aPayer()
  const made = await requested(base, key, '/wallet-infra/byo-wallets', {
    address: account.address,
    chain: 'base-sepolia',
    supportedTokens: ['USDC'],
  })
  return { id: String(made.body.id), address: account.address }
}

async function requested(base: string, key: string, path: string, body: unknown): Promise<Answer> {
  const response = await request(base, { key, method: 'POST', path, body })
  if (response.status >= 300) throw new Error(`${path}: ${JSON.stringify(response.body)}`)
  return response
}

/** The body that verifies a credential for the deployment's wallet. */
export function verifyBody(walletId: string, credential: string): Readonly<Record<string, string>> {
  return { protocol: 'x402', credential, price: '0.01', currency: 'USD', walletId, resource, method: 'GET' }
}
