import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { compiledModules } from './compiled-modules.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const source = path.resolve(import.meta.dirname, '../src')

/** Each `@example` as a module of its own, by a file name beside the tests. */
const examples: ReadonlyMap<string, string> = new Map(
  readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('generated'))
    .flatMap((name) => {
      const blocks = readFileSync(path.join(source, name), 'utf8').match(/\* @example\n(?: *\*(?: .*)?\n)+/g) ?? []
      return blocks.map((block, index): [string, string] => [
        path.join(import.meta.dirname, `example-${name.replaceAll(/\W/g, '-')}-${index}.ts`),
        block
          .split('\n')
          .slice(1)
          .map((line) => line.replace(/^ *\* ?/, ''))
          .join('\n'),
      ])
    }),
)

/** The TypeScript blocks of the packages' READMEs and of the guide to the tools for agents, as modules of their own. */
const snippets: ReadonlyMap<string, string> = new Map(
  ['packages/protocol/README.md', 'packages/sdk/README.md', 'docs/agents.md'].flatMap((name) => {
    const text = readFileSync(path.join(root, name), 'utf8')
    return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ''], index): [string, string] => [
      path.join(import.meta.dirname, `snippet-${name.replaceAll(/\W/g, '-')}-${index}.ts`),
      code,
    ])
  }),
)

const modules: ReadonlyMap<string, string> = new Map([...examples, ...snippets])

/** The entries that the SDK's manifest exports. */
const entries: readonly string[] = Object.values(
  z
    .object({ exports: z.record(z.string(), z.string()) })
    .parse(JSON.parse(readFileSync(path.join(source, '../package.json'), 'utf8'))).exports,
).map((file) => path.resolve(source, '..', file))

const { program, errors } = compiledModules(modules, { entries })

/** The functions and classes that an entry exports. */
function callablesOf(entry: string): readonly ts.Symbol[] {
  const checker = program.getTypeChecker()
  const file = program.getSourceFile(entry)
  const module = file === undefined ? undefined : checker.getSymbolAtLocation(file)
  if (module === undefined) throw new Error(`${entry} is not a module`)
  return checker
    .getExportsOfModule(module)
    .map((one) => (one.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(one) : one))
    .filter(({ flags }) => flags & (ts.SymbolFlags.Function | ts.SymbolFlags.Class))
}

test('every example of the documentation, and every block of the READMEs and of the guide for agents, compiles', () => {
  expect(examples.size).toBeGreaterThan(15)
  expect(snippets.size).toBe(12)
  expect(errors).toEqual([])
})

test('every function and class that the package exports has an example', () => {
  const callables = entries.flatMap(callablesOf)
  expect(callables.length).toBeGreaterThan(40)
  const lacking = callables.filter((one) =>
    one.getJsDocTags(program.getTypeChecker()).every(({ name }) => name !== 'example'),
  )
  expect([...new Set(lacking.map(({ name }) => name))].sort()).toEqual([])
})
