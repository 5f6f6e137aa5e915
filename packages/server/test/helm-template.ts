import { stringify } from 'yaml'

type Scope = Readonly<Record<string, unknown>>
type Token = { readonly text: string } | { readonly action: string }

/**
 * Renders the few actions that the chart is limited to: values, `quote`, `nindent`, `toYaml`, `include`, `if` and `range` over pairs. Any other
 * action is an error, so that the chart cannot leave what this can check. It is no replacement for Helm.
 */
export function renderTemplate(text: string, values: Scope, helpers: string): string {
  const scope = { '.Values': values, '.Release': { Name: 'pay' } }
  return renderAll(tokensOf(text), scope, definesOf(helpers))
}

/** `{{-` removes the blanks before it, and `-}}` those after it. */
function tokensOf(text: string): Token[] {
  const trimmed = text.replace(/\s*\{\{-/g, '{{').replace(/-\}\}\s*/g, '}}')
  return trimmed
    .split(/\{\{\s*(.*?)\s*\}\}/)
    .map((part, index) => (index % 2 === 0 ? { text: part } : { action: part }))
}

function definesOf(helpers: string): ReadonlyMap<string, Token[]> {
  const defines = new Map<string, Token[]>()
  const tokens = tokensOf(helpers)
  while (tokens.length > 0) {
    const token = tokens.shift()
    const name = token !== undefined && 'action' in token ? /^define "(.+)"$/.exec(token.action)?.[1] : undefined
    if (name !== undefined) defines.set(name, bodyOf(tokens))
  }
  return defines
}

/** Takes the tokens up to the `end` of the block that has begun. */
function bodyOf(tokens: Token[]): Token[] {
  const body: Token[] = []
  let depth = 1
  for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
    if ('action' in token && /^(?:if|range) /.test(token.action)) depth++
    if ('action' in token && token.action === 'end') depth--
    if (depth === 0) return body
    body.push(token)
  }
  throw new Error('a block has no end')
}

function renderAll(given: readonly Token[], scope: Scope, defines: ReadonlyMap<string, Token[]>): string {
  const tokens = [...given]
  let out = ''
  for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
    if ('text' in token) out += token.text
    else if (/^(?:if|range) /.test(token.action)) {
      const body = bodyOf(tokens)
      for (const inner of scopesOf(token.action, scope)) out += renderAll(body, inner, defines)
    } else out += resultOf(token.action, scope, defines)
  }
  return out
}

/** The scopes in which a block's body is rendered: one or none of `if`, one for each pair of `range`. */
function scopesOf(action: string, scope: Scope): Scope[] {
  const [, test] = /^if (\S+)$/.exec(action) ?? []
  if (test !== undefined) return lookUp(test, scope) ? [scope] : []
  const [, key, item, from] = /^range (\$\w+), (\$\w+) := (\S+)$/.exec(action) ?? []
  if (key === undefined || item === undefined || from === undefined) throw new Error(`not supported: ${action}`)
  return Object.entries(lookUp(from, scope) as object).map(([name, value]) => ({
    ...scope,
    [key]: name,
    [item]: value,
  }))
}

function resultOf(action: string, scope: Scope, defines: ReadonlyMap<string, Token[]>): string {
  const [first = '', ...filters] = action.split(' | ')
  const [, included] = /^include "(.+)" \.$/.exec(first) ?? []
  const [, shown] = /^toYaml (\S+)$/.exec(first) ?? []
  const value = () => {
    if (shown !== undefined) return stringify(lookUp(shown, scope)).trimEnd()
    if (included === undefined) return String(lookUp(first, scope))
    const body = defines.get(included)
    if (body === undefined) throw new Error(`no template ${included}`)
    return renderAll(body, scope, defines)
  }
  return filters.reduce(filtered, value())
}

function filtered(value: string, filter: string): string {
  if (filter === 'quote') return JSON.stringify(value)
  const [, blanks] = /^nindent (\d+)$/.exec(filter) ?? []
  if (blanks === undefined) throw new Error(`not supported: ${filter}`)
  return `\n${value}`.replaceAll('\n', `\n${' '.repeat(Number(blanks))}`)
}

function lookUp(name: string, scope: Scope): unknown {
  const root = Object.keys(scope).find((one) => name === one || name.startsWith(`${one}.`))
  if (root === undefined) throw new Error(`not supported: ${name}`)
  const steps = name
    .slice(root.length + 1)
    .split('.')
    .filter((step) => step !== '')
  const found = steps.reduce<unknown>((at, step) => (at as Scope)[step], scope[root])
  if (found === undefined) throw new Error(`no value ${name}`)
  return found
}
