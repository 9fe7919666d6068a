export default function Page() {
  return <a href="/api/ask">Ask</a>;
}
