import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { CommandError, type CommandOf, listed, type Printed, type Program, runProgram } from '@purser/cli/program'
import { type Address, formatAmount, isAddress, networkByName, parseAmount, tokenBySymbol } from '@purser/protocol'
import { type DevChainRecord, readDevChains } from './dev-file.ts'
import { fundNative, fundToken, nativeBalance, type ReachableChain } from './faucet.ts'
import { readStartSettings } from './start-settings.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Amount of each token that `purser dev fund` gives, in whole tokens. */
const tokenUnits = '1000'
/** 10 of the chain's coin, in wei. */
const coinWei = 10n ** 19n

/** Test money that an account got, for a person and for a program. */
interface Given {
  readonly network: string
  readonly amount: string
  readonly token: string
}

const fund: CommandOf<Env> = {
  name: 'fund',
  summary: 'Give an address test tokens and gas coin on the chains of a running npm start.',
  positionals: ['<address>'],
  options: {
    network: { value: '<name>', about: 'only on this chain, such as base-sepolia' },
    token: { value: '<symbol>', about: 'only this token, such as USDC, and no coin' },
    amount: { value: '<amount>', about: `how much of each token (default ${tokenUnits})` },
  },
  notes: ['It reads $DATA_DIR/dev.json (.purser/dev.json).', 'Example: purser dev fund 0x… --token USDC --amount 25'],
  async run({ positionals, options }, env) {
    const [address = ''] = positionals
    if (!isAddress(address)) throw new CommandError(`${address} is not an address: give 0x and 40 hexadecimal digits.`)
    const given: Given[] = []
    for (const chain of chainsOf(env, options.network)) given.push(...(await fundOn(chain, address, options)))
    return {
      exitCode: 0,
      lines: given.map(({ network, amount, token }) => `${network}: ${amount} ${token}`),
      json: { address, given },
    }
  },
}

/** The commands of `purser dev` as a user writes them. */
export const devCommands = [{ ...fund, name: `dev ${fund.name}` }] as const

const program: Program<Env> = {
  commands: [fund],
  usage: [
    'Commands for a running npm start:',
    '',
    ...listed([{ name: 'purser dev fund', summary: fund.summary }]),
    '',
    'Each takes --help and --format json. Exit codes: 0 success, 2 failure.',
  ],
  spell: (name) => `purser dev ${name}`,
  outcomeOf: () => undefined,
}

/** Runs `purser-dev <args>`; a leading `dev`, as in `purser dev <args>`, is accepted. */
export function runDev(args: readonly string[], env: Env): Promise<Printed> {
  const words = args[0] === 'dev' ? args.slice(1) : args
  return runProgram(program, words.length === 0 ? ['--help'] : words, { context: env, print: () => undefined })
}

/** The running chains, or the one of this name. Throws a `CommandError` that names what to start or to write. */
function chainsOf(env: Env, wanted: string | undefined): readonly ReachableChain[] {
  const settings = readStartSettings(env)
  if ('fault' in settings) throw new CommandError(settings.fault)
  const file = path.resolve(settings.dataDir, 'dev.json')
  const chains = existsSync(file) ? readDevChains(readFileSync(file, 'utf8')) : {}
  const names = Object.keys(chains)
  if (names.length === 0)
    throw new CommandError(`${file} names no chain. Run npm start, and set DATA_DIR here if you set it there.`)
  const reachable = Object.entries(chains).flatMap(([name, chain]) => reachableChain(name, chain))
  if (wanted === undefined) return reachable
  const found = reachable.find(({ network }) => network === wanted)
  if (found === undefined) throw new CommandError(`npm start runs no chain ${wanted}: use one of ${names.join(', ')}.`)
  return [found]
}

function reachableChain(name: string, { rpcUrl, tokens }: DevChainRecord): ReachableChain[] {
  const network = networkByName(name)?.name
  return network === undefined ? [] : [{ network, rpcUrl, tokens }]
}

async function fundOn(
  chain: ReachableChain,
  address: Address,
  { token, amount = tokenUnits }: Readonly<Record<string, string | undefined>>,
): Promise<readonly Given[]> {
  const symbols = token === undefined ? Object.keys(chain.tokens) : [token]
  const amounts = symbols.map((symbol) => amountOf(chain, symbol, amount))
  const given: Given[] = []
  const coin = networkByName(chain.network)?.nativeCoin ?? null
  if (token === undefined && coin !== null) {
    await fundNative(chain, address, (await nativeBalance(chain, address)) + coinWei)
    given.push({ network: chain.network, amount: formatAmount(coinWei, coin.decimals), token: coin.symbol })
  }
  for (const { symbol, raw, decimals } of amounts) {
    await fundToken(chain, symbol, address, raw)
    given.push({ network: chain.network, amount: formatAmount(raw, decimals), token: symbol })
  }
  return given
}

function amountOf(
  { network: name, tokens }: ReachableChain,
  symbol: string,
  amount: string,
): { readonly symbol: string; readonly raw: bigint; readonly decimals: number } {
  const network = networkByName(name)
  const known = network && tokenBySymbol(network, symbol)
  if (known === undefined || tokens[symbol] === undefined)
    throw new CommandError(`${name} has no token ${symbol}: it has ${Object.keys(tokens).join(', ')}.`)
  const raw = parseAmount(amount, known.decimals)
  if (typeof raw !== 'bigint' || raw === 0n)
    throw new CommandError(
      `--amount ${amount} is not usable: give a number above 0, with at most ${known.decimals} decimals.`,
    )
  return { symbol, raw, decimals: known.decimals }
}
