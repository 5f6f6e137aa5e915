import { type ApiDocument, type Operation, type Parameter, recordedBody, resolved } from './document.ts'

export interface CodeSample {
  readonly lang: 'typescript' | 'python'
  readonly label: string
  readonly source: string
}

/** The call of an operation by the TypeScript and the Python client; none for an operation that takes or gives anything but JSON. */
export function samplesOf(document: ApiDocument, operation: Operation, origin: string): readonly CodeSample[] {
  const call = callOf(document, operation)
  if (call === undefined) return []
  return [
    {
      lang: 'typescript',
      label: 'Purser for TypeScript',
      source: `${typescriptOpening(origin)}\n${typescriptOf(call)}`,
    },
    { lang: 'python', label: 'Purser for Python', source: `${pythonOpening(origin)}\n${pythonOf(call)}` },
  ]
}

const typescriptOpening = (origin: string): string => `import { createPurser } from '@purser/sdk'

const purser = createPurser({ apiKey: process.env.PURSER_API_KEY ?? '', baseUrl: '${origin}' })`

const pythonOpening = (origin: string): string => `import os
from purser import Purser

purser = Purser(os.environ["PURSER_API_KEY"], "${origin}")`

interface Call {
  readonly operationId: string
  /** A list of pages, over which both clients iterate. */
  readonly isPaged: boolean
  /** A list, paged or not: the Python client iterates over each. */
  readonly isLinked: boolean
  readonly hasResponse: boolean
  readonly inPath: readonly unknown[]
  /** Members of the body, or required fields of the query. */
  readonly named: Readonly<Record<string, unknown>>
}

function callOf(document: ApiDocument, operation: Operation): Call | undefined {
  const { components } = document
  const { operationId, requestBody, responses } = operation
  const body = requestBody?.content?.['application/json']
  const [status, response] = Object.entries(responses).find(([code]) => code.startsWith('2')) ?? []
  const { content = {}, headers = {} } =
    (response === undefined ? undefined : resolved(components.responses, response)) ?? {}
  const types = Object.keys(content)
  const isJson = types.length === 0 || types.includes('application/json')
  if (status === undefined || !isJson || (requestBody !== undefined && body === undefined)) return undefined
  const parameters = (operation.parameters ?? []).flatMap((one) => resolved(components.parameters, one) ?? [])
  const value = (parameter: Parameter): unknown => exampleOf(parameter, components.schemas)
  const query = parameters.filter((one) => one.in === 'query' && one.required === true)
  const given = recordedBody(document, operation)
  return {
    operationId,
    isPaged: parameters.some(({ name }) => name === 'cursor'),
    isLinked: 'Link' in headers,
    hasResponse: types.length > 0,
    inPath: parameters.filter((one) => one.in === 'path').map(value),
    named: Object.assign(Object.fromEntries(query.map((one) => [one.name, value(one)])), given),
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function exampleOf(parameter: Parameter, schemas: ApiDocument['components']['schemas']): unknown {
  const schema = resolved(schemas, parameter.schema)
  const known = schema?.example ?? schema?.default ?? schema?.enum?.[0]
  return known ?? (schema?.format === 'date-time' ? '2026-11-22T12:00:00.000Z' : `<${parameter.name}>`)
}

function typescriptOf({ operationId, isPaged, hasResponse, inPath, named }: Call): string {
  const values = [...inPath, ...(Object.keys(named).length === 0 ? [] : [named])]
  const call = `purser.${operationId}(${values.map((value) => typescriptValue(value)).join(', ')})`
  if (isPaged) return `for await (const item of ${call}) console.log(item)`
  return `${hasResponse ? 'const answer = ' : ''}await ${call}`
}

/** As a person writes it: names without quotes where that is possible, and texts in single ones. */
function typescriptValue(value: unknown, indent = ''): string {
  const inner = `${indent}  `
  if (Array.isArray(value)) return `[${value.map((one) => typescriptValue(one, indent)).join(', ')}]`
  if (!isObject(value)) return typeof value === 'string' ? quoted(value) : JSON.stringify(value)
  const lines = Object.entries(value).map(([name, one]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name)
    return `${inner}${key}: ${typescriptValue(one, inner)},\n`
  })
  return lines.length === 0 ? '{}' : `{\n${lines.join('')}${indent}}`
}

function pythonOf({ operationId, isLinked, hasResponse, inPath, named }: Call): string {
  const name = operationId.split('.').map(snake).join('.')
  const values = [
    ...inPath.map((value) => pythonValue(value, '    ')),
    ...Object.entries(named).map(([key, value]) => `${snake(key)}=${pythonValue(value, '    ')}`),
  ]
  const parts = Object.keys(named).length === 0 ? values.join(', ') : `\n    ${values.join(',\n    ')},\n`
  const call = `purser.${name}(${parts})`
  if (isLinked) return `for item in ${call}:\n    print(item)`
  return `${hasResponse ? 'answer = ' : ''}${call}`
}

function pythonValue(value: unknown, indent = ''): string {
  const inner = `${indent}    `
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map((one) => pythonValue(one, indent)).join(', ')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const lines = Object.entries(value).map(
    ([name, one]) => `${inner}${JSON.stringify(name)}: ${pythonValue(one, inner)},\n`,
  )
  return lines.length === 0 ? '{}' : `{\n${lines.join('')}${indent}}`
}

const keywords = ['from', 'in', 'is', 'class', 'def', 'global', 'import', 'pass', 'with']

/** As the generator of the Python client names it. */
function snake(name: string): string {
  const text = name
    .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, '_')
    .replaceAll('-', '_')
    .toLowerCase()
  return keywords.includes(text) ? `${text}_` : text
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`
}
