"""Draw docs/pipeline.svg: `python -m docs.write_pipeline > docs/pipeline.svg`.

The folders in the order of their imports, row by row; tests/test_imports_flow_one_way.py compares both.
"""

from html import escape

# Row → its colour and its folders, each with what happens there.
ROWS: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "From a text to ranked labels and answers": (
        "#e8f0fe",
        {
            "data": ("files → documents,", "tokens, batches"),
            "capsules": ("primary, compression,", "votes; routing/"),
            "encoders": ("convolution, BiLSTM,", "transformer"),
            "lexical": ("linear models, similar", "documents, names"),
            "networks": ("label_query, paper,", "hybrid"),
            "evaluation": ("P@k, nDCG, MAP,", "bootstrap"),
            "scoring": ("ranked labels,", "fusion, thresholds"),
        },
    ),
    "A model is trained, stored, explained and taught": (
        "#fef3e2",
        {
            "explain": ("words and documents", "behind a label"),
            "model_folder": ("safetensors + JSON,", "checked before use"),
            "export": ("ONNX, prediction", "without torch"),
            "training": ("the loop,", "checkpoints"),
            "learning": ("feedback, new labels,", "versions"),
            "tuning": ("a search over", "settings"),
            "baselines": ("xml_cnn, fast_xml, …", "one file each"),
        },
    ),
    "What people use": (
        "#e6f4ea",
        {
            "report": ("pages, plots,", "routing curves"),
            "compare": ("systems side by side", "on your data"),
            "sharding": ("prediction in parts,", "Ray"),
            "estimators": ("fit, predict:", "scikit-learn"),
            "service": ("HTTP and the", "review page"),
            "demo": ("a first look,", "on the sample"),
            "cli": ("nlpcapsule train,", "predict, serve, …"),
        },
    ),
}
WIDTH, HEIGHT, GAP, LEFT, ROW = 132, 74, 12, 8, 122


def pipeline_svg() -> str:
    """Return the picture."""
    width = 2 * LEFT + 7 * WIDTH + 6 * GAP
    height = len(ROWS) * ROW + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" text-anchor="middle" role="img" '
        'aria-label="The folders of the package, row by row, in the order of their imports">',
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#5f6368"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for row, (title, (colour, folders)) in enumerate(ROWS.items()):
        top = row * ROW + 34
        parts.append(
            f'<text x="{LEFT}" y="{top - 12}" text-anchor="start" font-size="14" fill="#3c4043">'
            f"{escape(title)}</text>"
        )
        for column, (name, lines) in enumerate(folders.items()):
            x = LEFT + column * (WIDTH + GAP)
            middle = x + WIDTH / 2
            parts.append(
                f'<rect x="{x}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{colour}" '
                'stroke="#9aa0a6"/>'
                f'<text x="{middle}" y="{top + 23}" font-size="15" font-weight="bold" fill="#202124">'
                f"{name}</text>"
            )
            parts += [
                f'<text x="{middle}" y="{top + 44 + 17 * line}" font-size="12" fill="#3c4043">'
                f"{escape(text)}</text>"
                for line, text in enumerate(lines)
            ]
            if column:
                parts.append(
                    f'<path d="M{x - GAP} {top + HEIGHT / 2}h{GAP - 1}" stroke="#5f6368" '
                    'stroke-width="1.6" marker-end="url(#a)"/>'
                )
    parts.append(
        f'<text x="{width / 2}" y="{height - 10}" font-size="13" fill="#3c4043">'
        "A folder imports folders before it, never one behind it.</text></svg>"
    )
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(pipeline_svg(), end="")
