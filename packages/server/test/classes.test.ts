import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')

interface Declared {
  readonly name: string
  /** The class that it extends; undefined if it extends none. */
  readonly base: string | undefined
  readonly hasPrivateState: boolean
}

function classesOf(text: string): readonly Declared[] {
  const parsed = ts.createSourceFile('a.tsx', text, ts.ScriptTarget.Latest, true)
  const found: Declared[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isClassLike(node)) {
      const parent = node.heritageClauses?.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword)?.types[0]
      const hasPrivateState = node.members.some(
        (member) => ts.isPropertyDeclaration(member) && ts.isPrivateIdentifier(member.name),
      )
      found.push({ name: node.name?.text ?? '', base: parent?.expression.getText(parsed), hasPrivateState })
    }
    ts.forEachChild(node, visit)
  }
  visit(parsed)
  return found
}

const files = globSync('packages/*/src/**/*.{ts,tsx}', { cwd: root }).filter(
  (file) => !file.includes('.test.') && !file.includes('/generated/'),
)
const declared = files.flatMap((file) => classesOf(readFileSync(path.join(root, file), 'utf8')))

/** Classes of others that have a lifetime: a stream, and a connection to PostgreSQL. */
const withLifetime = ['Readable', 'pg.Client']

/** Values that `instanceof` recognizes: a handler returns any value, and a value of these classes is not data to send or to bind. */
const recognized = ['Reply', 'EventStreamResponse', 'Statement']

/** Whether a class is one of those that CONTRIBUTING.md allows. */
function isAllowed({ name, base, hasPrivateState }: Declared, all: readonly Declared[]): boolean {
  if (hasPrivateState || recognized.includes(name)) return true
  if (base === undefined) return false
  if (base === 'Error' || withLifetime.includes(base)) return true
  const parent = all.find((one) => one.name === base)
  return parent !== undefined && isAllowed(parent, all)
}

test('a class is an error, has a lifetime, owns state behind private fields, or is recognized by instanceof', () => {
  expect(declared.length).toBeGreaterThan(50)
  expect(declared.filter((one) => !isAllowed(one, declared)).map(({ name }) => name)).toEqual([])
  const values = declared.filter(({ base, hasPrivateState }) => base === undefined && !hasPrivateState)
  expect(values.map(({ name }) => name).toSorted()).toEqual(recognized.toSorted())
})

test.each([
  ['class Payments { find() {} }', false],
  ['class Payments { readonly db = 1; find() {} }', false],
  ['class Payments extends Repository {}', false],
  ['class Payments { #open = 0; find() {} }', true],
  ['class Refused extends Error {}\nclass Late extends Refused {}', true],
  ['class Part extends Readable {}', true],
])('%j is allowed: %s', (text, allowed) => {
  const classes = classesOf(text)
  expect(classes.every((one) => isAllowed(one, classes))).toBe(allowed)
})
