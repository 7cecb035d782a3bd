/** Markdown in, HTML out that can do nothing but be read. */

import { describe, expect, it } from "vitest";

import { footnotesOf } from "../src/markdown/footnotes";
import { parse } from "../src/markdown/parse";
import { sanitise } from "../src/markdown/sanitise";
import { definitions, linksIn, type Section, Splitter } from "../src/markdown/split";

const html = (text: string): string => sanitise(parse(text));
const blocksOf = (text: string, splitter = new Splitter()): string[] => splitter.split(text).flatMap(({ blocks }) => blocks);
function shown(text: string): HTMLElement {
  const element = document.createElement("div");
  element.innerHTML = html(text);
  return element;
}

const LONG = `# Title

A paragraph
of two lines.

- one

- two
  more

\`\`\`python
def f():

    return 1
\`\`\`

| a | b |
|---|--:|
| 1 | 2 |

$$
x^2

+ y
$$

> quoted

The end`;

describe("splitting", () => {
  it("loses nothing: the blocks are the text", () => {
    expect(blocksOf(LONG).join("")).toBe(LONG);
  });

  it("keeps lists, code and formulas with blank lines whole", () => {
    const blocks = blocksOf(LONG);
    expect(blocks.filter((block) => block.includes("- one"))).toEqual([expect.stringContaining("more")]);
    expect(blocks.find((block) => block.startsWith("```python"))).toContain("return 1");
    expect(blocks.find((block) => block.startsWith("$$"))).toContain("+ y");
  });

  it("ends with the same blocks however the text streams in", () => {
    const whole = blocksOf(LONG);
    for (const step of [1, 3, 7, 50]) {
      const splitter = new Splitter();
      for (let at = step; at < LONG.length; at += step) splitter.split(LONG.slice(0, at));
      expect(blocksOf(LONG, splitter)).toEqual(whole);
    }
  });

  it("reads only the last block again while text streams in", () => {
    const splitter = new Splitter();
    const before = blocksOf("one\n\ntwo\n\nthr", splitter);
    const after = blocksOf("one\n\ntwo\n\nthree", splitter);
    expect(before.slice(0, -1)).toEqual(["one\n\n", "two\n\n"]);
    expect(after.slice(0, -1)).toEqual(before.slice(0, -1));
  });

  it("leaves full sections as they are: nobody has to look into them again", () => {
    const text = Array.from({ length: 40 }, (_, place) => `paragraph ${place}\n\n`).join("");
    const splitter = new Splitter();
    let before: Section[] = [];
    for (let at = 5; at <= text.length; at += 5) {
      const sections = splitter.split(text.slice(0, at));
      expect(sections.flatMap(({ blocks }) => blocks).join("")).toBe(text.slice(0, at));
      for (const [place, section] of before.entries()) if (section.full) expect(sections[place]).toBe(section);
      before = sections;
    }
    expect(before.map(({ blocks, full }) => [blocks.length, full])).toEqual([[12, true], [12, true], [12, true], [4, false]]);
  });

  it("begins anew where the text is another one", () => {
    const splitter = new Splitter();
    splitter.split("one\n\ntwo");
    expect(blocksOf("three", splitter)).toEqual(["three"]);
  });

  it("finds link definitions wherever they stand", () => {
    const links = definitions("see [a]\n\n[A]: https://example.org\n[b]: https://example.org/b");
    expect(linksIn("see [a]", links)).toBe("[A]: https://example.org");
    expect(linksIn("see [it][ a\n]", links)).toBe("[A]: https://example.org");
    expect(sanitise(parse("see [a]", "[a]: https://example.org"))).toContain('href="https://example.org"');
  });

  it.each(["[", "![", "_a", "[^", "**a", "\\(", "$$\n", "> ", "- "])("shows what would take too long as it is written: %j (U3)", (piece) => {
    const text = piece.repeat(40_000);
    const [block = ""] = blocksOf(text);
    for (const grown of [block, `${block} and`, `${block} and more`]) expect(parse(grown)).toContain("<pre>");
    footnotesOf(text); // in no more time
  });

  it("reads a text of many links in one go (U3)", () => {
    const text = Array.from({ length: 2_000 }, (_, at) => `[${at}]: https://example.org/${at}\n\nSee [${at}].\n\n`).join("");
    const links = definitions(text);
    const html = blocksOf(text).map((block) => parse(block, linksIn(block, links)));
    expect(html.join("")).toContain('<a href="https://example.org/1999">1999</a>');
  });
});

describe("sanitising (U3)", () => {
  it.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<iframe src='https://evil.example'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](javascript:alert(1))",
    "<style>body{display:none}</style>",
    "<form action=/api/login><input name=password></form>",
    "<b onclick=alert(1)>x</b>",
    "<details open ontoggle=alert(1)>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "`<img src=x onerror=alert(1)>`",
    "$<img src=x onerror=alert(1)>$",
    "```<img onerror=alert(1)>\nx\n```",
    "[a]: javascript:alert(1)\n\n[a]",
    "<div data-src='https://evil.example/x.png' class='remote-image'>x</div>",
  ])("%s runs nothing and loads nothing", (text) => {
    const element = shown(text);
    expect(element.querySelectorAll("script, iframe, style, form, svg, object, img, math, .remote-image[data-src^=http]")).toHaveLength(0);
    for (const node of element.querySelectorAll("*")) {
      for (const { name, value } of node.attributes) {
        expect(name).not.toMatch(/^on|style|srcdoc/);
        expect(value).not.toMatch(/^\s*(?:javascript|data:text)/i);
      }
    }
  });

  it("takes no short way past what could act", () => {
    const tricks = ["<scr<p>ipt>x</script>", "<p onclick=x>a</p>", '<pre data-language="a" onfocus=x>', "<<p>img src=x onerror=y>", "<!--<p>--><svg onload=x>"];
    for (const trick of tricks) expect(sanitise(trick)).not.toMatch(/<(?!\/?(?:p|pre)\b)|\bon\w+=(?![^<]*<\/p>)|<[^>]*\son/);
    expect(sanitise('<p>a <em>b</em></p><pre data-language="c++"><code>1 &lt; 2</code></pre>')).toContain("<em>b</em>");
  });

  it("shows tags that it does not know as text", () => {
    expect(shown("a <think>b</think> c").textContent).toContain("<think>b</think>");
  });

  it("keeps plain tags, without what stands in them", () => {
    expect(html("H<sub>2</sub>O<br>")).toContain("<sub>2</sub>");
  });

  it("holds back images of other sites, and shows those that are here (U3)", () => {
    const element = shown("![a cat](https://cats.example/cat.png) ![b](/api/files/abc?type=image/png)");
    expect([...element.querySelectorAll("img")].map((image) => image.getAttribute("src"))).toEqual(["/api/files/abc?type=image/png"]);
    expect(element.querySelector<HTMLElement>(".remote-image")?.dataset.src).toBe("https://cats.example/cat.png");
  });

  it("opens links elsewhere, and tells them nothing", () => {
    const link = shown("[x](https://example.org)").querySelector("a");
    expect(link?.getAttribute("target")).toBe("_blank");
    expect(link?.getAttribute("rel")).toContain("noopener");
  });

  it("keeps what tables and task lists need", () => {
    expect(shown("|a|b|\n|-|-:|\n|1|2|").querySelector("td:last-child")?.getAttribute("align")).toBe("right");
    const boxes = shown("- [x] done\n- [ ] open").querySelectorAll<HTMLInputElement>("input[type=checkbox]");
    expect([...boxes].map((box) => [box.checked, box.disabled])).toEqual([[true, true], [false, true]]);
  });
});

describe("formulas", () => {
  const formulas = (text: string): string[] => [...shown(text).querySelectorAll(".math")].map((node) => node.textContent ?? "");

  it.each([
    ["inline $e^{i\\pi}$ here", ["e^{i\\pi}"]],
    ["\\(a_1 < b\\)", ["a_1 < b"]],
    ["$$\na *b* c\n$$", ["a *b* c"]],
    ["\\[x\\]", ["x"]],
    ["it costs $5 and $6", []],
    ["`$x$`", []],
    ["```\n$$x$$\n```", []],
  ])("%j", (text, expected) => {
    expect(formulas(text)).toEqual(expected);
  });
});

describe("what people write beyond the usual", () => {
  it("makes an alert of a quote that says so", () => {
    const quote = shown("> [!WARNING]\n> Mind the **gap**.").querySelector("blockquote");
    expect(quote?.className).toBe("alert warning");
    expect(quote?.textContent).not.toContain("[!");
    expect(quote?.querySelectorAll("strong")).toHaveLength(2);
    expect(shown("> [!WARNING] is how it is written").querySelector("blockquote")?.textContent).toContain("is how");
    expect(shown("> words").querySelector("blockquote")?.className).toBe("");
  });

  it("keeps what stands in details in them, however the text streams in", () => {
    const text = "before\n\n<details>\n<summary>More</summary>\n\nHidden **words**.\n\n- a\n\n</details>\n\nafter";
    const whole = blocksOf(text);
    expect(whole).toHaveLength(3);
    const details = shown(whole[1] ?? "").querySelector("details");
    expect(details?.querySelector("strong")?.textContent).toBe("words");
    expect(details?.querySelector("li")).not.toBeNull();
    const splitter = new Splitter();
    for (let at = 1; at < text.length; at++) splitter.split(text.slice(0, at));
    expect(blocksOf(text, splitter)).toEqual(whole);
  });

  it("numbers footnotes as they are referred to, and shows them once", () => {
    const text = "One[^b], two[^a], three[^b], none[^c] and `[^a]`.\n\n[^a]: The *first*.\n[^b]: Second,\n  in two lines.";
    const notes = footnotesOf(text);
    expect(notes.texts).toEqual(["Second,\nin two lines.", "The *first*."]);
    const words = blocksOf(text).map((block) => sanitise(parse(block, "", notes))).join("");
    expect(words).toContain('One<sup class="footnote">[1]</sup>, two<sup class="footnote">[2]</sup>');
    expect(words).toContain("none[^c] and <code>[^a]</code>");
    expect(words).not.toContain("in two lines");
  });
});

describe("a number with a dot", () => {
  it("is an answer where nothing follows, and a list where something does", () => {
    expect(shown("42.").querySelector("p")?.textContent).toBe("42.");
    expect(shown("The answer:\n\n7)").querySelector("ol")).toBeNull();
    expect(shown("1. one").querySelectorAll("ol li")).toHaveLength(1);
    expect(shown("1.\n2. two").querySelectorAll("ol li")).toHaveLength(2);
  });
});
