/** The blocks of TypeScript and JavaScript in the guides: each compiles with what the text around it provides. */

import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { compiledModules } from './compiled-modules.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const pages = globSync(['README.md', 'docs/*.md'], { cwd: root }).sort()

/** What the blocks use without making it: the text around them says what it is. */
const surroundings: Readonly<Record<string, string>> = {
  account: "import('viem').PrivateKeyAccount",
  agentKey: 'string',
  apiKey: 'string',
  app: "import('express').Express",
  baseUrl: 'string',
  child: '{ readonly id: string }',
  createReadStream: "typeof import('node:fs').createReadStream",
  headers: 'Record<string, string>',
  key: "import('viem').Hex",
  payTo: "import('viem').Hex",
  paymentMiddleware: "(...args: readonly unknown[]) => import('express').RequestHandler",
  pay: "import('@purser/sdk/pay').PayingFetch",
  pool: '{ query(text: string, values?: readonly unknown[]): Promise<{ rows: unknown[] }> }',
  proof: "Awaited<ReturnType<import('@purser/sdk').Purser['vaults']['proof']>>",
  proofOfItem: "Awaited<ReturnType<import('@purser/sdk').Purser['vaults']['proof']>>",
  purser: "import('@purser/sdk').Purser",
  readFile: "typeof import('node:fs/promises').readFile",
  routes: 'object',
  secret: 'string',
  url: 'string',
  walletId: 'string',
}

interface Block {
  readonly name: string
  readonly language: string
  readonly code: string
}

const blocks: readonly Block[] = pages.flatMap((page) =>
  [...readFileSync(path.join(root, page), 'utf8').matchAll(/^```(ts|js)\n([\s\S]*?)^```$/gm)].map(
    ([, language = '', code = ''], index) => ({ name: `${page.replaceAll(/\W/g, '-')}-${index}`, language, code }),
  ),
)

/** What the text around the blocks provides, as declarations that a block may shadow. */
const ambient = Object.entries(surroundings)
  .map(([name, type]) => `declare const ${name}: ${type}\n`)
  .join('')

/** The faults that a reader's compiler finds, by their number and message. */
function errorsIn(language: string, strict: boolean): readonly string[] {
  const chosen = blocks.filter((block) => block.language === language)
  expect(chosen.length).toBeGreaterThan(3)
  const modules = chosen.map(({ name, code }) => [`guide-${name}.ts`, `${code}\nexport {}\n`] as const)
  const files = [...modules, ['guide-surroundings.d.ts', ambient] as const]
  const placed = files.map(([name, code]) => [path.join(import.meta.dirname, name), code] as const)
  return compiledModules(new Map(placed), { options: { strict, exactOptionalPropertyTypes: false } }).errors
}

test('every block of TypeScript in a guide compiles', () => {
  expect(errorsIn('ts', true)).toEqual([])
})

test('every block of JavaScript in a guide imports what its modules export, and gives options that exist', () => {
  // A reader of JavaScript has no types that are narrower than the values. The facilitators of x402 and mppx differ in an optional member.
  const ofTypesAlone =
    /(?:Argument of type|Type) '(?:string' is not assignable to (?:parameter of )?type '`0x\$\{string\}`|unknown' is not assignable|HTTPFacilitatorClient' is not assignable to type 'string \| Facilitator')/
  expect(errorsIn('js', false).filter((error) => !ofTypesAlone.test(error))).toEqual([])
})
