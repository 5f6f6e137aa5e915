import MiniSearch, { type SearchResult } from 'minisearch'
import { escapeHtml } from '../reference/html.ts'
import type { Guide } from './guides.ts'

/** A section of a guide, or the page of an error. */
interface Section {
  /** The address of the section, which names it too. */
  readonly id: string
  readonly page: string
  readonly title: string
  readonly text: string
  /** The code of its blocks: found by the names in it, and not shown. */
  readonly code: string
}

/** A section that matches a query. */
export interface Match extends Omit<Section, 'code'> {
  /** The words of the section that match, in lower case. */
  readonly words: readonly string[]
}

/** Returns the matches of a query. */
export type Search = (query: string) => readonly Match[]

const matchesMax = 20
/** Most words of a query that are searched, and queries whose matches are kept. */
const wordsMax = 8
const keptMax = 500
/** Most letters in which a word may differ: with more, a long word is compared with most words of the index. */
const editsMax = 2
const excerptCharacters = 220

/**
 * Returns the search over all guides and error pages. Other requests are served between the guides, because to read all of them takes a second. The
 * search returns at most 20 matches: guides and codes that have all words of the query
 * in their name first, then sections with them in their title, then all others; the best of each first. Words may be incomplete or misspelled;
 * the first eight count. Keeps the matches of some queries.
 */
export async function createSearch(
  guides: ReadonlyMap<string, Guide>,
  sectionsOf: (guide: Guide) => readonly Section[],
): Promise<Search> {
  const index = new MiniSearch<Section>({
    fields: ['title', 'page', 'text', 'code'],
    storeFields: ['page', 'title', 'text'],
    searchOptions: {
      boost: { title: 4, page: 3, code: 0.5 },
      ...{ prefix: isPrefix, fuzzy: 0.15, maxFuzzy: editsMax, combineWith: 'AND' },
    },
  })
  for (const guide of guides.values()) {
    await new Promise((resolve) => setImmediate(resolve))
    if (guide.name.startsWith('errors/')) index.add(errorSection(guide))
    else if (!/^decisions\/|^CHANGELOG$/.test(guide.name)) index.addAll(sectionsOf(guide))
  }
  const matchesOf = (words: string): readonly Match[] =>
    index
      .search(words)
      .map((found) => ({ found, rank: rankOf(found) }))
      .toSorted((left, right) => left.rank - right.rank)
      .slice(0, matchesMax)
      .map(({ found: { id, page, title, text, terms } }) => ({ id, page, title, text, words: terms }))
  const kept = new Map<string, readonly Match[]>()
  return (query) => {
    const words = searchedWords(query)
    const known = kept.get(words)
    if (known !== undefined) return known
    const matches = matchesOf(words)
    if (kept.size >= keptMax) kept.delete(kept.keys().next().value ?? '')
    kept.set(words, matches)
    return matches
  }
}

/** The words of a query that are searched: each once, and a limited number, since each costs a search. */
function searchedWords(query: string): string {
  const words = query.toLowerCase().split(/[\n\r\p{Z}\p{P}]+/u)
  return [...new Set(words)]
    .filter((word) => word !== '')
    .slice(0, wordsMax)
    .join(' ')
}

/** The rank of a result: guides and codes by their name come first, then sections by their title, then sections by theirs and their guide's. */
function rankOf({ title, page, queryTerms }: SearchResult): number {
  const [code] = String(title).split(': ')
  const isNamed = title === page || (page === errorsPage && hasAll(queryTerms.join(' '), wordsOf(code ?? '')))
  if (hasAll(title, queryTerms)) return isNamed ? 0 : 1
  return hasAll(`${title} ${page}`, queryTerms) ? 2 : 3
}

const errorsPage = 'Errors'

/** The beginning of a word matches it, unless it is shorter than three letters. */
function isPrefix(term: string): boolean {
  return term.length > 2
}

/** Whether each term is a word of the text, or the beginning of one. */
function hasAll(text: string, terms: readonly string[]): boolean {
  const words = wordsOf(text)
  return terms.every((term) => words.some((word) => word === term || (isPrefix(term) && word.startsWith(term))))
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/[^\p{L}\p{N}]+/u)
}

/** The whole page of an error, found by its code and by every word of its causes. */
function errorSection({ name, title, markdown }: Guide): Section {
  const text = plainText(markdown.replaceAll(/^#+ .+$/gm, ''))
  return { id: `/docs/${name}`, page: errorsPage, title: `${name.slice('errors/'.length)}: ${title}`, text, code: '' }
}

/** Cuts Markdown into the sections below its headings. */
export function sectionsOf(
  { name, title, markdown }: Guide,
  headings: readonly { readonly id: string; readonly level: number; readonly text: string }[],
): Section[] {
  const blocks: string[] = []
  // A heading in a block of code is none: a control character, which no page has, keeps the place of the block.
  const prose = markdown.replaceAll(
    /^```\w*\n([\s\S]*?)^```$/gm,
    (_, code: string) => `\u0001${blocks.push(code) - 1}\u0001`,
  )
  const parts = prose.split(/^#{1,6} .+$/m).slice(1)
  const codeIn = (part: string): string =>
    [...part.matchAll(/\u0001(\d+)\u0001/g)].map(([, index]) => blocks[Number(index)] ?? '').join('\n')
  return headings.map(({ id, level, text }, place) => ({
    id: level === 1 ? `/docs/${name}` : `/docs/${name}#${id}`,
    page: title,
    title: text,
    text: plainText((parts[place] ?? '').replaceAll(/\u0001\d+\u0001|^\|[\s:|-]+\|$/gm, ' ')),
    code: codeIn(parts[place] ?? ''),
  }))
}

function plainText(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .replaceAll(/[`*|]|^- /gm, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** Returns the part of a text around the first word that matches, as HTML in which the matching words are marked. */
export function excerpt({ text, words }: Match): string {
  const pattern = new RegExp(`(${words.map((word) => word.replaceAll(/[^\p{L}\p{N}]/gu, '.')).join('|')})`, 'gi')
  const first = Math.max(0, text.search(pattern))
  const start = first < excerptCharacters / 2 ? 0 : text.indexOf(' ', first - excerptCharacters / 2) + 1
  const shown = text.slice(start, start + excerptCharacters)
  const marked = shown
    .split(pattern)
    .map((part, place) => (place % 2 === 1 ? `<mark>${escapeHtml(part)}</mark>` : escapeHtml(part)))
  return `${start > 0 ? '… ' : ''}${marked.join('')}${start + excerptCharacters < text.length ? ' …' : ''}`
}
