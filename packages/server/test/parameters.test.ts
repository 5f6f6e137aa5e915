import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')

interface Declared {
  /** The file below `packages/`, and the function's name. */
  readonly name: string
  readonly parameters: readonly ts.ParameterDeclaration[]
  /** The parameter that the function asserts, as in `asserts isGood`. */
  readonly asserted: string | undefined
}

const declared: readonly Declared[] = globSync('packages/*/src/**/*.{ts,tsx}', { cwd: root })
  .filter((file) => !file.includes('.test.') && !file.includes('/generated/'))
  .flatMap((file) => functionsOf(file))

/** Each function and method of a file: those that have a name, and those that a variable or a property names. */
function functionsOf(file: string): readonly Declared[] {
  const text = readFileSync(path.join(root, file), 'utf8')
  const parsed = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found: Declared[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && !ts.isConstructorTypeNode(node) && 'body' in node && node.body !== undefined) {
      const named = node.name ?? ('name' in node.parent ? node.parent.name : undefined)
      const name = named !== undefined ? (named as ts.Node).getText(parsed) : 'a function without a name'
      const asserted = /^asserts (\w+)$/.exec(node.type?.getText(parsed) ?? '')?.[1]
      found.push({ name: `${file.slice('packages/'.length)} ${name}`, parameters: [...node.parameters], asserted })
    }
    ts.forEachChild(node, visit)
  }
  visit(parsed)
  return found
}

test('no function has more than four parameters', () => {
  expect(declared.length).toBeGreaterThan(10_000)
  expect(declared.filter(({ parameters }) => parameters.length > 4).map(({ name }) => name)).toEqual([])
})

/** React's compiler calls it so. */
const withBoolean = ['dashboard/src/ui/visible-text.ts jsxDEV']

// A function takes a named property of an object, or is two functions: `settle(payment, true)` says nothing to its reader.
test('no function has a boolean parameter, except the condition that it asserts', () => {
  const isBoolean = ({ type, initializer }: ts.ParameterDeclaration): boolean =>
    /^boolean( \| undefined)?$/.test(type?.getText() ?? '') || /^(true|false)$/.test(initializer?.getText() ?? '')
  const found = declared
    .filter(({ parameters, asserted }) => parameters.some((one) => isBoolean(one) && one.name.getText() !== asserted))
    .map(({ name }) => name)
  expect([...new Set(found)].sort()).toEqual(withBoolean)
})

/** Equal types that the compiler cannot tell apart, where the wrong order moves the wrong amount, or to the wrong account, or at the wrong time. */
const swappable = /^(?:bigint|Address|Hex|Date)(?: \| undefined)?$/

/** Functions whose result is the same in either order, or whose name gives the order. Remove a line when its function changes. */
const withNeighbors = [
  'devnet/src/faucet.ts sendFromDevAccount',
  'devnet/src/sandbox-market.ts reserveOf',
  'dashboard/src/ui/time.ts shortTime',
  'protocol/src/evm-abi.ts encodeIsValidSignature',
  'protocol/src/x402/permit2-abi.ts isNonceSpent',
  'server/src/chain/fees/costs.ts feeInToken',
  'server/src/chain/fees/fees.ts dataGasOf',
  'server/src/chain/fees/fees.ts firstFees',
  'server/src/chain/fees/fees.ts larger',
  'server/src/chain/fees/fees.ts smaller',
  'server/src/chain/reads/payment-reads.ts ethCall',
  'server/src/chain/rpc/receipts.ts isSameWhereKnown',
  'server/src/features/payments/store.ts countingPayments',
  'server/src/features/plans/gas-prices.ts dividedUp',
  'server/src/features/plans/usage.ts least',
  'server/src/features/relayer/batch.ts compare',
  'server/src/features/wallets/policy/decide.ts isCapRaised',
  'server/src/features/wallets/screening/freeze.ts lower',
  'server/src/partners/routing/abi.ts decodeCall',
  'server/src/partners/routing/cctp-calls.ts isSentMessage',
  'server/src/partners/screening/dating.ts isStale',
]

test('no function has two adjacent amounts, addresses, bytes or times, except the listed ones', () => {
  const typeOf = (parameter: ts.ParameterDeclaration | undefined): string => parameter?.type?.getText() ?? ''
  const found = declared.filter(({ parameters }) =>
    parameters.some((one, at) => swappable.test(typeOf(one)) && typeOf(one) === typeOf(parameters[at + 1])),
  )
  expect([...new Set(found.map(({ name }) => name))].sort()).toEqual([...withNeighbors].sort())
})
