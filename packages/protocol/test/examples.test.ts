import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import * as protocol from '../src/index.ts'

const source = path.resolve(import.meta.dirname, '../src')

interface Example {
  readonly file: string
  /** The statements before it in its block. */
  readonly before: readonly string[]
  readonly code: string
  readonly result: string
}

interface SourceFile {
  readonly file: string
  readonly text: string
}

const files: readonly SourceFile[] = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((file) => ({ file, text: readFileSync(path.join(source, file), 'utf8') }))

/** The lines `expression // result` of every `@example`. Its other lines are statements before them. */
const examples: readonly Example[] = files.flatMap(({ file, text }) =>
  (text.match(/\* @example\n(?: \* .*\n)+/g) ?? []).flatMap((block) => examplesIn(file, block)),
)

function examplesIn(file: string, block: string): readonly Example[] {
  const lines = block
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.replace(/^ ?\* /, ''))
  const before = lines.filter((line) => !/ \/\/ .+$/.test(line))
  const found = lines.flatMap((line) => {
    const [, code, result] = /^(.+) \/\/ (.+)$/.exec(line) ?? []
    return code === undefined || result === undefined ? [] : [{ file, before, code, result }]
  })
  if (found.length === 0) throw new Error(`not an example with a result: ${block}`)
  return found
}

/** Evaluates an expression after statements, with all exports of the package in scope. */
function evaluate(expression: string, before: readonly string[] = []): unknown {
  const body = [...before, `return (${expression})`].join('\n')
  return new Function(...Object.keys(protocol), body)(...Object.values(protocol))
}

test('the documentation has examples', () => {
  expect(examples.length).toBeGreaterThan(180)
})

test.each(examples)('$file: $code is $result', ({ before, code, result }) => {
  expect(evaluate(code, before)).toEqual(evaluate(result))
})

/** Without an example: mostly exported for the other packages of the project, which encode transactions, derive keys and sign. */
const withoutExample = new Set([
  'AbiMalformed',
  'addressOfPublicKey',
  'checkAuthorization',
  'checkPermit2',
  'containsPermit2Settle',
  'decodeAggregate3',
  'decodeAuthorizationUsedLog',
  'decodeTransferLog',
  'decodeTransferWithMemoLog',
  'encodeAggregate3',
  'encodeGetNonce',
  'encodeIsValidSignature',
  'encodePermit2Allowance',
  'encodePermit2Settle',
  'encodeTransferWithAuthorization',
  'expectedOf',
  'expectedPermit2Of',
  'hdChildAddress',
  'hdMaster',
  'hdPrivateChild',
  'hdPrivatePath',
  'hdPublicChild',
  'hdPublicOf',
  'isPermit2Settle',
  'merkleParents',
  'merklePathPlaces',
  'offerPayload',
  'offersExtension',
  'offersOfMpp',
  'offersOfV1',
  'parseEcdsa',
  'parsePermit2Payment',
  'paymentRequiredV1',
  'permit2Digest',
  'permit2DomainSeparator',
  'reasonOfPermit2Revert',
  'receiptExtension',
  'receiptPayload',
  'recoverAddress',
  'redemptionHash',
  'requirementsV1',
  'signedHeader',
  'supportedResponse',
  'transferWithAuthorizationDigest',
  'typedDataDigest',
  'verifyItem',
  'verifySeal',
  'verifyWebhookByKey',
  'wipeHdNode',
])

test('every exported function has an example, except those listed here', () => {
  const callables = Object.entries(protocol).flatMap(([name, value]) => (typeof value === 'function' ? [name] : []))
  const lacking = callables.filter((name) => !files.some(({ text }) => isShown(text, name)))
  expect(lacking.sort()).toEqual([...withoutExample].sort())
})

/** Whether the text declares the name after a docstring with an example. */
function isShown(text: string, name: string): boolean {
  const declared = new RegExp(`\\n \\*/\\nexport (?:async )?(?:function|const|class) ${name}\\b`).exec(text)
  if (declared === null) return false
  return text.slice(text.lastIndexOf('/**', declared.index), declared.index).includes('* @example\n')
}
