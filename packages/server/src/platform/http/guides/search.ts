import MiniSearch from 'minisearch'
import type { ErrorTable } from '../../errors.ts'
import { escapeHtml } from '../reference/html.ts'
import type { Guide } from './guides.ts'

/** A section of a guide, or the page of an error. */
interface Section {
  /** The address of the section, which names it too. */
  readonly id: string
  readonly page: string
  readonly title: string
  readonly text: string
}

/** A section that matches a query. */
export interface Match extends Section {
  /** The words of the section that match, in lower case. */
  readonly words: readonly string[]
}

const matchesMax = 20
const excerptCharacters = 220

/** Returns the search over all guides and error pages: the best matches first, at most 20. Words may be incomplete or misspelled. */
export function createSearch(
  guides: ReadonlyMap<string, Guide>,
  sectionsOf: (guide: Guide) => readonly Section[],
  errors: ErrorTable,
): (query: string) => readonly Match[] {
  const index = new MiniSearch<Section>({
    fields: ['title', 'page', 'text'],
    storeFields: ['page', 'title', 'text'],
    searchOptions: { boost: { title: 4, page: 3 }, prefix: (term) => term.length > 2, fuzzy: 0.15, combineWith: 'AND' },
  })
  index.addAll([...guides.values()].filter(({ name }) => !/^decisions\/|^CHANGELOG$/.test(name)).flatMap(sectionsOf))
  index.addAll(
    Object.entries(errors).map(([code, { title, detail }]) => {
      return { id: `/docs/errors/${code}`, page: 'Errors', title: `${code}: ${title}`, text: detail }
    }),
  )
  return (query) =>
    index
      .search(query)
      .slice(0, matchesMax)
      .map(({ id, page, title, text, terms }) => ({ id, page, title, text, words: terms }))
}

/** Cuts Markdown into the sections below its headings of the first three levels; code is left out. */
export function sectionsOf(
  { name, title, markdown }: Guide,
  headings: readonly { readonly id: string; readonly level: number; readonly text: string }[],
): Section[] {
  const prose = markdown.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/^\|[\s:|-]+\|$/gm, '')
  const parts = prose.split(/^#{1,6} .+$/m).slice(1)
  return headings.map(({ id, level, text }, place) => ({
    id: level === 1 ? `/docs/${name}` : `/docs/${name}#${id}`,
    page: title,
    title: text,
    text: (parts[place] ?? '')
      .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
      .replaceAll(/[`*|]/g, ' ')
      .replaceAll(/\s+/g, ' ')
      .trim(),
  }))
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
