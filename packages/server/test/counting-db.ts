import type { Db, Queryable, Sql } from '../src/platform/db/db.ts'

/** A database that counts round trips: statements, and the begin and the end of each transaction. */
export function counting(db: Db): { readonly db: Db; readonly statements: string[] } {
  const statements: string[] = []
  const counted = <Q extends Queryable>(own: Q): Q => {
    const noting = <T>({ text }: Sql, doing: () => T): T => {
      statements.push(text)
      return doing()
    }
    return {
      ...own,
      one: (row, statement) => noting(statement, () => own.one(row, statement)),
      maybeOne: (row, statement) => noting(statement, () => own.maybeOne(row, statement)),
      many: (row, statement) => noting(statement, () => own.many(row, statement)),
      run: (statement) => noting(statement, () => own.run(statement)),
    }
  }
  return {
    statements,
    db: {
      ...counted(db),
      tx(work, options) {
        statements.push('begin')
        return db.tx((tx) => work(counted(tx)), options).finally(() => statements.push('end'))
      },
    },
  }
}
